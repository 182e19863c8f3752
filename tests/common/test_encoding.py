"""Every file is read and written as UTF-8, and what Unix alone has is optional."""

import ast
import builtins
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hf_posgen.common.files import read_rows, write_rows, write_text
from tests.helpers.synthetic_rows import study1

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")])
UNIX_ALONE = {"resource", "fcntl", "pwd", "grp", "termios"}


def text_calls(tree: ast.AST):
    """Calls that read or write text by the locale's encoding."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(keyword.arg in ("encoding", None) for keyword in node.keywords):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        method, texts = (
            isinstance(node.func, ast.Attribute),
            [a.value for a in node.args if isinstance(a, ast.Constant)],
        )
        modes = [text for text in texts if isinstance(text, str) and set(text) <= set("rwaxbt+") and text]
        by_mode = not any("b" in mode for mode in modes)
        owner = getattr(getattr(node.func, "value", None), "id", "")
        if (
            (name == "read_text" and method and not node.args)
            or (name == "write_text" and method and len(node.args) == 1)
            or (name == "open" and by_mode and method and owner != "os" and (modes or not node.args))
            or (name == "open" and by_mode and not method)
            or (name == "fdopen" and by_mode)
            or (owner == "subprocess" and any(keyword.arg == "text" for keyword in node.keywords))
        ):
            yield node


def test_the_search_finds_what_it_should():
    found = (
        "p.read_text()\np.write_text(t)\np.open('a')\nopen(p)\nos.fdopen(h, 'w')\nsubprocess.run(c, text=1)\np.open()"
    )
    assert len(list(text_calls(ast.parse(found)))) == 7
    fine = (
        "p.read_text('utf-8')\nwrite_text(p, t)\np.open('rb')\nopen(p, encoding='utf-8')\nos.open(p, 1)\nT.open(p, n)"
    )
    assert not list(text_calls(ast.parse(fine)))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_text_depends_on_the_locale(file):
    lines = [node.lineno for node in text_calls(ast.parse(file.read_text(encoding="utf-8")))]
    assert not lines, f"{file} reads or writes text without encoding= on lines {lines}"


def test_a_report_in_a_locale_that_is_not_utf8(tmp_path):
    rows = [row | {"arm": f"größer {row['arm']}"} for row in study1()]
    write_rows(tmp_path / "runs" / "results.jsonl", rows)
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "PYTHON"))}
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "hf_posgen", "report", str(tmp_path / "runs"), "-o", str(tmp_path / "out")]
    done = subprocess.run(command, env=plain | locale, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "größer rope" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8").isascii() is False


def test_rows_and_texts_keep_every_character(tmp_path):
    rows = [{"arm": "a\u2028b\x85c|größer 😀\n"}]
    write_rows(tmp_path / "rows.jsonl", rows)
    assert read_rows(tmp_path / "rows.jsonl") == rows
    write_text(tmp_path / "text", "a\nü\n")
    assert (tmp_path / "text").read_bytes() == b"a\n\xc3\xbc\n"


def test_training_works_without_what_unix_alone_has(monkeypatch):
    """As on Windows: the modules aren't there."""
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name in UNIX_ALONE:
            raise ImportError(f"No module named {name!r}")
        return real(name, *arguments, **options)

    import hf_posgen.training.log as log

    monkeypatch.setattr(builtins, "__import__", without)
    try:
        importlib.reload(log)
        assert log.peak_memory() is None or log.torch.cuda.is_available()
    finally:
        monkeypatch.undo()
        importlib.reload(log)


def test_no_module_needs_what_unix_alone_has():
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not UNIX_ALONE & set(names), f"{file} imports {names} where Windows has none"
