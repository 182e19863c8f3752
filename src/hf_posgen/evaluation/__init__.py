"""Evaluation: a model measured cell by cell, in rows."""

from ..common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "evaluate": "runs",
        "save_evaluation": "runs",
        "run_evaluation": "targets",
    },
)
