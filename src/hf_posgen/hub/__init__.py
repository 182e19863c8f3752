"""Publishing on the Hugging Face Hub."""

from ..common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "push": "publish",
        "push_dataset": "publish",
        "push_metric": "publish",
        "BackgroundPush": "background",
        "PushError": "errors",
    },
)
