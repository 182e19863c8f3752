"""The shape of the package: what travels, what ships, what may not be there."""

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "hf_posgen"
TRAVELLING = sorted((PACKAGE / "model").glob("*.py"))
MAY_IMPORT = {"torch", "transformers", "numpy", "huggingface_hub"} | set(sys.stdlib_module_names)


@pytest.mark.parametrize("path", TRAVELLING, ids=lambda p: p.name)
def test_travelling_files_import_only_what_a_stranger_has(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert all(alias.name.partition(".")[0] in MAY_IMPORT for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            assert node.module.partition(".")[0] in MAY_IMPORT
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 1 and node.module and "." not in node.module, "only `from .sibling import name`"


@pytest.mark.parametrize("path", TRAVELLING, ids=lambda p: p.name)
def test_no_docstring_looks_like_a_relative_import(path):
    """transformers finds the files to carry along with a regular expression over the text."""
    tree = ast.parse(path.read_text())
    docstrings = [
        ast.get_docstring(node) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    ]
    for text in docstrings:
        assert not re.search(r"^\s*(import|from)\s+\.", text, re.MULTILINE)


def test_no_travelling_file_is_named_like_a_standard_module():
    clashes = {path.stem for path in TRAVELLING} & (
        set(sys.stdlib_module_names) | {"encodings", "evaluate", "datasets"}
    )
    assert not clashes


def test_the_datasets_folder_holds_no_python():
    assert not list((ROOT / "datasets").rglob("*.py"))


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['posgen', '--help']\n"
        "from hf_posgen.cli.dispatch import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'datasets', 'accelerate'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "sweep" in done.stdout


def test_the_wheel_builds_and_holds_what_it_needs(tmp_path):
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1500:]
    names = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    for path in PACKAGE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert str(path.relative_to(PACKAGE.parent)) in names, f"{path} is not in the wheel"
