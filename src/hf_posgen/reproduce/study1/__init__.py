"""Study 1 (arXiv 2607.18759), from training to verdicts."""

from ...common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "reproduce": "run",
    },
)
