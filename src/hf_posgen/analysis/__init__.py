"""Why a checkpoint generalises or breaks: analyses of its attention and kernels.

One file per analysis; `registry.py` says what one consists of and lists them.
"""

from ..common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "ANALYSES": "registry",
        "AnalysisContext": "context",
        "NotApplicable": "context",
        "analyze": "running",
        "describe": "terminal",
        "register_analysis": "registry",
        "run_folders": "running",
    },
)
