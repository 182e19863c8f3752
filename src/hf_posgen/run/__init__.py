"""What a run is: its configuration, its folder, its cost."""

from ..common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "RunConfig": "schema",
        "RunFolder": "folder",
        "build_model": "build",
        "build_run": "build",
    },
)
