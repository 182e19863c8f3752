"""The folder of a sweep: a run folder per trial, and the names of what lies beside them."""

from dataclasses import dataclass
from pathlib import Path

from ..common.files import require_folder, write_text
from ..run.folder import RESULTS


@dataclass(frozen=True)
class SweepFolder:
    """Where a sweep keeps its files."""

    path: Path

    @property
    def sweep_file(self) -> Path:
        return self.path / "sweep.yaml"

    @property
    def results(self) -> Path:
        return self.path / RESULTS

    @property
    def selection(self) -> Path:
        """The trials by which learning rates are chosen."""
        return self.path / "selection"

    @property
    def logs(self) -> Path:
        """What trials print."""
        return self.path / "logs"

    def claim(self, text: str) -> None:
        """Keep the sweep's own text in the folder. Raises `ValueError` for a folder that holds anything but a sweep."""
        require_folder(self.path)
        if (
            self.path.exists()
            and (not self.path.is_dir() or any(self.path.iterdir()))
            and not self.sweep_file.is_file()
        ):
            raise ValueError(f"{self.path} is not empty and holds no sweep: choose another folder")
        write_text(self.sweep_file, text)
