"""One trial of a sweep: a run, and the folder it is trained in."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from ..run.build import RunConfig, run_hash
from ..run.folder import RunFolder


@dataclass(frozen=True, eq=False)
class Trial:
    """A run and where it goes: `parent`/panel-arm-seed-digest. evaluate: whether it is evaluated once trained."""

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
    def files(self) -> RunFolder:
        return RunFolder(self.folder)

    @property
    def done(self) -> bool:
        return (self.files.results if self.evaluate else self.files.weights).is_file()

    def write(self) -> None:
        """Write the trial's run file, so that `command` can be run anywhere that sees the folder."""
        self.files.claim(self.run)

    def command(self) -> list[str]:
        """Return the trial as a launch of its own, once it is written."""
        command = ["accelerate", "launch", "-m", "hf_posgen", "train", str(self.files.run_file)]
        return [*command, "--out", str(self.folder), *([] if self.evaluate else ["--no-evaluate"])]

    def shell_command(self) -> str:
        return shlex.join(self.command())


@dataclass(frozen=True)
class Failure:
    """A trial that did not finish, and the last lines it printed."""

    run: str
    last_lines: str


def last_lines(text: str, count: int = 3) -> str:
    """Return our own sentence about what went wrong, where there is one (launchers print more after it), else the last
    `count` lines."""
    lines = text.strip().splitlines()
    own = [line for line in lines if line.startswith("posgen: ")]
    return "\n".join(own[-1:] or lines[-count:])
