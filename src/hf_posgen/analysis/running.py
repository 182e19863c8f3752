"""Analyses of a run folder's checkpoint, and what they leave there."""

from pathlib import Path

from ..common.files import finite, to_json, write_text
from ..plotting import look, save
from ..run.folder import RunFolder
from .context import AnalysisContext, NotApplicable
from .registry import ANALYSES, find_analysis


def analyze(run_folder: str | Path, *, only=None, count: int = 256, figures: bool = True) -> dict:
    """Measure a run folder's checkpoint; write analysis.json and figures/analysis_<name>.png there; return the results.

    only: names, for some of the analyses (results of others that stand in analysis.json are kept). count: sequences per
    measurement. An analysis without meaning for this checkpoint gives {"not_applicable": why}. Raises `ValueError` for a
    folder without a run or an unknown name.
    """
    folder = RunFolder(run_folder)
    context = AnalysisContext.open(folder, count)  # first, since the run's imports may register analyses
    chosen = {name: find_analysis(name) for name in only or ANALYSES}
    results = folder.analysis_results() if only else {}
    for name, analysis in chosen.items():
        try:
            results[name] = analysis.measure(context)
        except NotApplicable as reason:
            results[name] = {"not_applicable": str(reason)}
            continue
        if figures and hasattr(analysis, "figure"):
            with look():
                save(analysis.figure(results[name]), folder.figures / f"analysis_{name}")
    write_text(folder.analysis, to_json(finite(results), indent=1) + "\n")
    return results
