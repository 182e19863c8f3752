"""The registry of the figures that a report draws of every panel.

A figure is a function `(panel, folder) -> [paths of the PNGs it wrote there]`; it returns an empty list where the panel
holds nothing for it. `hf_posgen.register_figure` adds one from outside the package.
"""

from collections.abc import Callable
from pathlib import Path

from ..results.panel import Panel
from .curves import curves
from .maps import heat_maps
from .positions import position_curve
from .two_by_two import two_by_two

Figure = Callable[[Panel, Path], list[Path]]

FIGURES: dict[str, Figure] = {
    "curves": curves,
    "positions": position_curve,
    "heat_maps": heat_maps,
    "two_by_two": two_by_two,
}


def register_figure(name: str, function: Figure) -> None:
    """Add a figure to every report made in this process.

    name: a new name; a module that is imported twice may register the same function again. Raises `ValueError` for a name
    that another figure has."""
    known = FIGURES.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (function.__module__, function.__qualname__):
        raise ValueError(
            f"figure {name!r} is registered already ({known.__module__}.{known.__qualname__}); choose another name"
        )
    FIGURES[name] = function
