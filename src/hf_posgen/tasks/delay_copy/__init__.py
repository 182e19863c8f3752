"""The delay copy of study 2."""

from ...common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "DelayCopy": "task",
    },
)
