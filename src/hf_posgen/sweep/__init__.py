"""Sweeps: many runs, then one report."""

from ..common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "sweep": "run",
        "read_sweep": "spec",
        "presets": "spec",
        "sweep_runs": "spec",
    },
)
