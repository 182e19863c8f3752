"""Reports: tables, figures and an explorable page, from rows alone."""

from ..common.face import lazy_face

__getattr__, __all__ = lazy_face(
    __name__,
    {
        "report": "markdown",
        "summary_tables": "markdown",
    },
)
