"""The model card and the results metadata of a run folder."""

from ..common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "card": "model_card",
        "render": "model_card",
    },
)
