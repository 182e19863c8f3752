"""Analyses of run folders, and what they leave there."""

import warnings
from collections.abc import Sequence
from pathlib import Path

from ..common.files import to_json, write_text
from ..evaluation.identity import model_digest
from ..plotting import look, save
from ..run.folder import RunFolder
from ..run.imports import import_modules
from .context import AnalysisContext, NotApplicable, plain
from .registry import ANALYSES, find_analysis


def analyze(
    folder: str | Path,
    *,
    only: Sequence[str] | None = None,
    count: int = 256,
    figures: bool = True,
    imports: Sequence[str] = (),
) -> dict:
    """Measure a checkpoint; write analysis.json and figures/analysis_<name>.png|pdf beside it; return {analysis: result}.

    folder: of a run; of a sweep, whose finished runs are all measured, which gives {run: {analysis: result}}; or of a
    `posgen` model alone, for which only analyses of the weights apply. only: names, for some of the analyses (results of
    others in analysis.json are kept, if they are of the same weights). count: sequences per measurement. imports: modules
    that register further analyses, beside those of the run. An analysis without meaning for this checkpoint gives
    {"not_applicable": why}.
    Raises `ValueError` for a folder that holds none of these, an unknown name, or weights that are no finite numbers.
    """
    import_modules(list(imports))
    runs, options = run_folders(folder), {"only": only, "count": count, "figures": figures}
    if runs[0].path == Path(folder):
        return _analyze_one(runs[0], **options)
    return {run.name: _analyze_one(run, **options) for run in runs}


def run_folders(folder: str | Path) -> list[RunFolder]:
    """Return the run of a folder, or the finished runs of a sweep's. Raises `ValueError` where there is none."""
    path = Path(folder)
    if not path.is_dir():
        raise ValueError(f"{path} is no folder: give a run's, a sweep's, or that of a posgen model")
    here = RunFolder(path)
    if here.is_run or here.model_config.is_file():
        return [here]
    runs = [RunFolder(inside) for inside in sorted(path.iterdir()) if (inside / here.run_file.name).is_file()]
    if not runs:
        raise ValueError(
            f"{path} holds no run ({here.run_file.name}: no such file), no runs of a sweep, and no model "
            f"({here.model_config.name}: no such file)"
        )
    finished = [run for run in runs if run.is_finished]
    if not finished:
        raise ValueError(f"none of the {len(runs)} runs in {path} is finished: the first is {runs[0].name}")
    if left := [run.name for run in runs if not run.is_finished]:
        warnings.warn(f"unfinished, and left out: {', '.join(left)}", stacklevel=2)
    return finished


def _analyze_one(folder: RunFolder, only: Sequence[str] | None, count: int, figures: bool) -> dict:
    context = AnalysisContext.open(folder, count)  # first, since the run's imports may register analyses
    chosen = {name: find_analysis(name) for name in only or ANALYSES}
    digest = model_digest(context.model, folder.model_config)
    there = folder.analysis_results() if only else {}
    results = {name: result for name, result in there.items() if result.get("model_digest") == digest}
    for name, analysis in chosen.items():
        try:
            results[name] = {"model_digest": digest} | plain(analysis.measure(context))
        except NotApplicable as reason:
            results[name] = {"model_digest": digest, "not_applicable": str(reason)}
        # After each one, so that a fault in a later analysis or in a figure loses no numbers.
        write_text(folder.analysis, to_json(results, indent=1) + "\n")
        if figures and "not_applicable" not in results[name] and hasattr(analysis, "figure"):
            with look():
                save(analysis.figure(results[name]), folder.figures / f"analysis_{name}")
    return results
