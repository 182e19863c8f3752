"""Study 2 (arXiv 2609.11913), from training to verdicts."""

from ...common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "reproduce": "run",
    },
)
