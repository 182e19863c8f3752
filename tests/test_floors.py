"""Packages stand on floors (docs/architecture.md): an import goes down or stays, never up, and lazily imported lines
count too."""

import ast
from collections.abc import Iterator
from pathlib import Path

from hf_posgen.run import folder

HOMES = ("run/folder.py", "run/model_files.py")  # of the file names of a run folder
PACKAGE = Path(__file__).parent.parent / "src" / "hf_posgen"
FLOORS = (
    "common",
    "metrics",
    "model",
    "tasks",
    "results",
    "plotting",
    "run",
    "evaluation",
    "analysis",
    "report",
    "card",
    "training",
    "sweep",
    "hub",
    "convert",
    "reproduce",
    "cli",
)


def imports(path: Path, package: Path = PACKAGE) -> Iterator[str]:
    """Yield the dotted names below hf_posgen that a file imports, wherever in it, "training.launch" say."""
    here = ["hf_posgen", *path.relative_to(package).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = here[: len(here) - node.level + 1] if node.level else []
            module = [*start, *(node.module.split(".") if node.module else [])]
            is_top = module == ["hf_posgen"]  # from .. import training: the name is the package
            names = [".".join([*module, alias.name]) for alias in node.names] if is_top else [".".join(module)]
        yield from (name.removeprefix("hf_posgen.") for name in names if name.startswith("hf_posgen."))


def upward(package: Path = PACKAGE) -> set[tuple[str, str]]:
    """Return every (file, import) that goes up a floor."""
    found = set()
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        for name in imports(path, package) if room in FLOORS else ():
            target = name.partition(".")[0]
            if target in FLOORS and FLOORS.index(target) > FLOORS.index(room):
                found.add((path.relative_to(package).as_posix(), name))
    return found


def test_every_room_has_a_floor():
    rooms = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if not path.name.startswith("__")}
    assert rooms - {"py.typed"} == set(FLOORS)


def test_no_import_goes_up():
    found = upward()
    assert not found, f"these imports go up a floor: {sorted(found)}"


def spelled_file_names(package: Path = PACKAGE) -> set[str]:
    """Return where the name of a file of a run folder is spelled, "report/page.py: report.html", beside its home."""
    names = {folder.RUN, folder.WEIGHTS, folder.LOG, folder.RESULTS, folder.ANALYSIS, folder.EVALUATION}
    names |= {folder.REPORT, folder.PAGE}
    found = set()
    for path in sorted(package.rglob("*.py")):
        where = path.relative_to(package)
        texts = [
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant)
        ]
        if where.parts[0] not in ("model",) and where.as_posix() not in HOMES:
            found |= {f"{where.as_posix()}: {text}" for text in texts if isinstance(text, str) and text in names}
    return found


def test_file_names_of_a_run_folder_are_spelled_once(tmp_path):
    assert not spelled_file_names()
    (tmp_path / "card.py").write_text('path = folder / "run.yaml"')
    assert spelled_file_names(tmp_path) == {"card.py: run.yaml"}


def test_an_import_that_goes_up_is_seen(tmp_path):
    """Inside functions, absolute, relative, and as a name of the package itself."""
    (tmp_path / "tasks" / "core").mkdir(parents=True)
    lines = [
        "def load():",
        "    from ...hub.publish import push",
        "    from ... import report",
        "    import hf_posgen.cli",
    ]
    (tmp_path / "tasks" / "core" / "task.py").write_text("\n".join(lines))
    (tmp_path / "training.py").write_text("from hf_posgen.sweep import run\nfrom .tasks import TASKS\n")
    file = "tasks/core/task.py"
    expected = {(file, "hub.publish"), (file, "report"), (file, "cli"), ("training.py", "sweep")}
    assert upward(tmp_path) == expected
