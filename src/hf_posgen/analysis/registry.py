"""The analyses by name.

An analysis is a module or a class with

- a docstring, whose first line says what it tells and whose rest defines every number that it prints;
- `measure(context) -> dict` in plain numbers, of an `AnalysisContext`; it raises `NotApplicable` where it has no meaning.
  Numbers of single heads stand in a list under "heads", each entry with its "layer" and "head";
- where it has a picture, `figure(result) -> matplotlib.figure.Figure`, drawn from those numbers alone.

`effective_rank.py` is a short one to start from. Here a new one costs its file, a line in `ANALYSES` and a test; outside,
a module that ends in `register_analysis(name, ...)` and stands in a run's `imports`.
"""

import importlib
import inspect

from ..common.names import unknown

ANALYSES = {  # name: the analysis, or the module that it is, imported when it is needed
    name: f"{__package__}.{name}"
    for name in (
        "carrier_kernel",
        "dilution",
        "pinning",
        "equivariance",
        "min_norm",
        "attention_spread",
        "effective_rank",
        "head_scores",
        "frequency_use",
        "probes",
    )
}


def register_analysis(name: str, analysis) -> None:
    """Make an analysis defined elsewhere available by name, in this process.

    analysis: a module or a class, as the docstring above says. Raises `ValueError` for a name that another analysis holds,
    or for something without `measure`.
    """
    if not callable(getattr(analysis, "measure", None)):
        raise ValueError(f"analysis {name!r} is {analysis!r}, which has no function measure(context)")
    held = ANALYSES.get(name, analysis)
    if held is not analysis and _origin(held) != _origin(analysis):
        raise ValueError(f"the name {name!r} is taken by {_origin(held)}")
    ANALYSES[name] = analysis


def find_analysis(name: str):
    """Return the analysis of a name, an instance where it is a class. Raises `ValueError` for an unknown name."""
    if name not in ANALYSES:
        raise unknown("analysis", name, ANALYSES)
    analysis = ANALYSES[name]
    if isinstance(analysis, str):
        analysis = importlib.import_module(analysis)
    return analysis() if isinstance(analysis, type) else analysis


def definition(name: str) -> str:
    """Return the docstring of an analysis, as Markdown."""
    return inspect.getdoc(find_analysis(name)) or ""


def summary(name: str) -> str:
    """Return what an analysis tells: the first line of its docstring, without the full stop."""
    return definition(name).partition("\n")[0].rstrip(".")


def _origin(analysis) -> str:
    """Return where an analysis is defined: a module that is imported anew holds the same one."""
    if isinstance(analysis, str):
        return analysis
    if isinstance(analysis, type):
        return f"{analysis.__module__}.{analysis.__qualname__}"
    return getattr(analysis, "__name__", repr(analysis))
