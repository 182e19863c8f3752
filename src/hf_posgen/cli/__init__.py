"""The command line: `posgen`, and `python -m hf_posgen`."""

from ..common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "main": "dispatch",
    },
)
