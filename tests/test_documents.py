"""Every command and every block of code of the pages works: in order, in a fresh folder, at small sizes.

A block whose first line is a comment with a file's name, `# recency.py`, is that file. Commands are typed to the program
itself with small sizes added; what needs a network is checked up to where it would begin.
"""

import importlib
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hf_posgen.analysis.registry import ANALYSES
from hf_posgen.cli.dispatch import main
from hf_posgen.model.encoding_registry import ENCODINGS
from hf_posgen.report.figures import FIGURES
from hf_posgen.sweep.executors.registry import EXECUTORS
from hf_posgen.tasks.registry import TASKS

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", "docs/training.md", "docs/text.md")
TRAINED = "--train.steps 2 --train.batch_size 4 --train.warmup_steps 0 --train.cpu true --train.validation_count 4"
MODEL = " --model.hidden_size 16 --model.num_hidden_layers 1 --model.num_attention_heads 2 --evaluation.count 4"
SMALL = {
    "train": f"{TRAINED} --train.validate_every 0 --train.save_every 0{MODEL}",
    "evaluate": "--count 4",
    "sweep": "--dry-run",
    "push": "--dry-run",
    "data push": "--dry-run",
    "data export": "--count 4 --train-count 4",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language (empty: commands) and its text."""

    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The name of the file that the block is, where its first line says so."""
        name = re.match(r"# ([\w.]+\.(?:py|yaml))\n", self.text)
        return name and name[1]

    def commands(self) -> list[list[str]]:
        """Return the commands of a block, each as a list of words, without its comments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        commands = [shlex.split(line, comments=True) for line in lines]
        return [words for words in commands if words and words[0] in ("posgen", "make", "python", "accelerate")]


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.finditer(r"^( *)```(\w*)\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    return [Block(m[2], re.sub(rf"^{m[1]}", "", m[3], flags=re.MULTILINE)) for m in found]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A fresh folder to type in, with a corpus; what the pages register is forgotten afterwards."""
    registries = (ENCODINGS, TASKS, ANALYSES, FIGURES, EXECUTORS)
    before, modules, path = [dict(registry) for registry in registries], set(sys.modules), list(sys.path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("hf_posgen.analysis.context.LONGEST", 64)  # an analysis looks at no longer sequences
    words = "".join(f"Paragraph {i} says that {i} times two is {2 * i}.\n\n" for i in range(3000))
    (tmp_path / "corpus.txt").write_text(words, encoding="utf-8")
    yield tmp_path
    for registry, content in zip(registries, before, strict=True):
        registry.clear()
        registry.update(content)
    for name in set(sys.modules) - modules:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]
    sys.path[:] = path


def type_in(words: list[str]) -> None:
    """Type a command of a page; what isn't the program itself must be there at least."""
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), words
        return
    if words[0] == "python":
        assert all((ROOT / word).exists() for word in words if "/" in word), words
        return
    arguments = words[words.index("train") :] if words[0] == "accelerate" else words[1:]
    command = next((name for name in SMALL if " ".join(arguments).startswith(name)), None)
    main([*arguments, *(SMALL[command].split() if command else [])])


def needs_network(words: list[str]) -> bool:
    """Whether a command begins with a model of the Hub."""
    return words[1] == "evaluate" and bool(re.match(r"(me|owner|HuggingFaceTB)/", words[2]))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_works_from_top_to_bottom(page, folder, monkeypatch, capsys):
    done = 0
    for block in blocks(page):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
            if block.file.endswith(".py"):
                importlib.invalidate_caches()
                importlib.import_module(block.file.removesuffix(".py"))
        elif block.language == "python":
            exec(compile(block.text, page, "exec"), {})
        elif not block.language:
            for words in block.commands():
                if needs_network(words):
                    with monkeypatch.context() as patch:
                        patch.setattr("hf_posgen.evaluation.targets.run_evaluation", reached)
                        with pytest.raises(Reached):
                            type_in(words)
                else:
                    type_in(words)
                done += 1
    assert done or page in ("docs/training.md", "docs/text.md")


class Reached(BaseException):
    """The network would begin here."""


def reached(*_, **__):
    raise Reached


def test_commands_of_a_block_are_read():
    block = Block("", "posgen train \\\n  --out x  # why\n# a comment\nposgen list tasks\n")
    assert block.commands() == [["posgen", "train", "--out", "x"], ["posgen", "list", "tasks"]]
    assert Block("python", "# a.py\nx = 1\n").file == "a.py" and Block("python", "x = 1\n").file is None
