"""Training: `train(run, out)` writes a run folder."""

from ..common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "train": "trainer",
        "Stopped": "setup",
        "Terminated": "setup",
        "learning_rate": "setup",
    },
)
