"""README.md says what the registries say, and its Python runs."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def _script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_match_the_registries():
    text = (ROOT / "README.md").read_text()
    assert _script("update_readme").updated(text) == text, "run: python scripts/update_readme.py"


def test_python_blocks_run():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_files_that_readme_links_to_exist():
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target
