"""README.md and docs say what the registries say, link to what there is, and their Python and runs are valid."""

import importlib.util
import re
from pathlib import Path

import pytest

from hf_posgen.common.yaml_text import read_yaml
from hf_posgen.run.build import build_run

ROOT = Path(__file__).parent.parent


def _script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_match_the_registries():
    script = _script("update_readme")
    texts = [(ROOT / file).read_text() for file in script.FILES]
    assert [script.updated(text) for text in texts] == texts, "run: python scripts/update_readme.py"
    marked = [name for text in texts for name in re.findall(r"<!-- ([a-z-]+) -->", text)]
    assert sorted(marked) == sorted(script.tables()), "every table stands somewhere, once"


def test_the_page_of_the_analyses_is_their_docstrings():
    script = _script("update_readme")
    assert script.ANALYSES_PAGE.read_text() == script.analyses_page(), "run: python scripts/update_readme.py"


def test_python_blocks_run():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


@pytest.mark.parametrize("file", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))])
def test_files_that_a_page_links_to_exist(file):
    for target in re.findall(r"\]\(([^)#:]+)\)", file.read_text()):
        assert (file.parent / target).exists(), target


def test_runs_that_pages_show_are_runs(tmp_path):
    runs = []
    for page in ("README.md", "docs/training.md"):
        for block in re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
            (tmp_path / "run.yaml").write_text(block)
            tree = read_yaml(tmp_path / "run.yaml")
            runs += [] if "panels" in tree else [build_run(tree)]
    assert len(runs) >= 2 and all(run.train.learning_rate == 3e-3 for run in runs)


def test_the_reference_names_every_column_of_a_row(finished_run):
    from hf_posgen.common.files import read_rows

    section = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8").split("## Columns of results.jsonl")[1]
    named = set(re.findall(r"`(\w+)`", section.split("\n## ")[0]))
    columns = {key for row in read_rows(finished_run / "results.jsonl") for key in row}
    missing = {key for key in columns if key not in named and key.rpartition("_")[0] not in named}
    assert not missing, f"docs/reference.md doesn't say what these are: {sorted(missing)}"
