"""Next-token prediction on a user's own text."""

from ...common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "Text": "task",
    },
)
