"""One point of a sweep."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from ..run.build import RunConfig, run_hash
from ..run.folder import RunFolder


@dataclass(frozen=True, eq=False)
class Point:
    """A run and where it goes: `parent`/panel-arm-seed-content. evaluate: whether it is measured when trained."""

    run: RunConfig
    parent: Path
    evaluate: bool = True

    @property
    def name(self) -> str:
        run = self.run
        name = f"{run.panel}-{run.arm}-seed{run.seed}-{run_hash(run)}".lstrip("-")
        return re.sub(r"[^\w.=+-]+", "_", name)

    @property
    def folder(self) -> Path:
        return self.parent / self.name

    @property
    def done(self) -> bool:
        return (self.folder / ("results.jsonl" if self.evaluate else "model.safetensors")).is_file()

    def write(self) -> None:
        """The point's run.yaml, so that `command` can be run anywhere that sees the folder."""
        RunFolder(self.folder).claim(self.run)

    def command(self) -> list[str]:
        """The point as a launch of its own, once it is written."""
        command = ["accelerate", "launch", "-m", "hf_posgen", "train", str(self.folder / "run.yaml")]
        return [*command, "--out", str(self.folder), *([] if self.evaluate else ["--no-evaluate"])]

    def shell_command(self) -> str:
        return shlex.join(self.command())


@dataclass(frozen=True)
class Failure:
    """A point that did not get done, and the last lines it said."""

    run: str
    last_lines: str


def last_lines(text: str, count: int = 3) -> str:
    """Our own sentence about what went wrong, where there is one: launchers say more after it."""
    lines = text.strip().splitlines()
    said = [line for line in lines if line.startswith("posgen: ")]
    return "\n".join(said[-1:] or lines[-count:])
