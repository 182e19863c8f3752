"""Why a checkpoint holds or breaks: `analyze(run_folder)` measures it and writes analysis.json and figures.

One file per analysis: `measure(subject) -> dict` in plain numbers, and `figure(result)`; its docstring is the definition.
"""

import importlib
import json
from pathlib import Path

# name: what it tells, in a line
ANALYSES = {
    "carrier_kernel": "the logit by offset: peak, alias, rank, phases",
    "dilution": "attention mass on the target against length, and the accuracy it predicts",
    "pinning": "whether the strongest key is an absolute position inside the training range",
    "equivariance": "how much the logits change when all positions shift",
    "min_norm": "the least-norm interpolant of the target kernel, beside the learned one",
    "attention_spread": "attention entropy and mass by distance",
    "effective_rank": "of W_Q^T W_K",
    "head_scores": "positional or symbolic: attention under swaps of keys",
    "frequency_use": "norms of queries and keys per rotary frequency",
    "probes": "accuracy under counterfactual positions, masks and frequencies",
}


def analyze(run_folder: str | Path, *, only=None, count: int = 256, figures: bool = True) -> dict:
    """Every analysis of a run folder's checkpoint; writes analysis.json and figures/analysis_<name>.png there.

    only: names, for a part of them (results of others that stand in analysis.json are kept). count: sequences per
    measurement. An analysis without meaning for this checkpoint gives {"not_applicable": why}. Raises `ValueError` for
    a folder without a run or an unknown name.
    """
    from ..common.files import write_text
    from ..common.names import unknown
    from .subject import NotApplicable, Subject

    folder = Path(run_folder)
    for name in only or ():
        if name not in ANALYSES:
            raise unknown("analysis", name, ANALYSES)
    subject = Subject.open(folder, count)
    file = folder / "analysis.json"
    results = json.loads(file.read_text()) if only and file.is_file() else {}
    for name in only or ANALYSES:
        module = importlib.import_module(f".{name}", __name__)
        try:
            results[name] = module.measure(subject)
        except NotApplicable as reason:
            results[name] = {"not_applicable": str(reason)}
            continue
        if figures:
            _save(module.figure(results[name]), folder / "figures" / f"analysis_{name}.png")
    write_text(file, json.dumps(results, indent=1) + "\n")
    return results


SETTING = ("offset", "train_length", "longest", "length", "layer", "head", "head_dim", "tolerance")  # asked, not found


def told(results: dict) -> str:
    """For a terminal, an analysis to a paragraph: what it tells, and its plain numbers, those of the first head at last."""
    lines = []
    for name, result in results.items():
        lines.append(f"{name}: {ANALYSES[name]}")
        if "not_applicable" in result:
            lines.append(f"  not here: {result['not_applicable']}")
            continue
        heads = result.get("heads") or [{}]
        parts = [("", result), ("first head: " if len(heads) > 1 else "", heads[0])]
        for label, numbers in parts:
            said = ", ".join(f"{key} {_plain(value)}" for key, value in _scalars(numbers).items())
            lines += [f"  {label}{said}"] if said else []
    return "\n".join(lines)


def _scalars(numbers: dict) -> dict:
    return {k: v for k, v in numbers.items() if isinstance(v, int | float | bool) and k not in SETTING}


def _plain(value) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:.3g}"


def _save(figure, path: Path) -> None:
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
