"""The headline numbers of arms and runs, and which differences between arms the seeds carry.

Defined once: the mathematics is in the `posgen_extrapolation` metric, what is fed to it is here.
"""

from itertools import combinations

import pandas as pd

from ..metrics.posgen_extrapolation.headlines import FarNumbers, far_numbers, max_solved
from ..report.tables import over_seeds
from .frame import (
    LABELS,
    SHARES,
    along,
    axes,
    baselines_beside,
    encodings,
    fits,
    metrics,
    trained_range,
)
from .statistics import holm, sign_flip, smallest_p, t_interval, underpowered

BEYOND = {"length": "longer", "distance": "farther"}
MUCH_WORSE = 1.05  # times the perplexity at the trained length
SPLITS = ("longer", "farther", "nearer", "between", "both")
DEFINITIONS = """\
- **Kept to**: the largest length (distance) up to which the lower bound of exact match is at least .9 at every cell, the
  other axis as trained; the worst and the best seed. "≥" where that is the last one asked. Of text: the largest length up
  to which perplexity is at most 1.05 times that at the trained length, wherever asked.
- **Mean over a split**: over its cells, then over the seeds that fit.
- **Sum**: accuracy summed over the distances asked, from 1 on (arXiv 2609.11913 sums 1 to 120). **P**: of that, what lies
  beyond the trained distances over what lies up to their end. P means nothing unless every distance from 1 on was asked and
  accuracy reaches its floor there, and it falls with a wider trained range by construction: beside it stand the P of a
  model that overshoots by five tokens, and that of a 2-gram baseline.
- **W**: accuracy beyond the trained distances, above the floor, as a share of what can be known, summed over the
  distances asked: distances won.
- **Look-ups** (what followed the last one or two tokens when they last stood here?) are scored over the tokens that they
  stand beside: the rest of a paste, or all its tokens. The bag of words (the commonest so far) is scored over all.
- **Fit**: in validation, token accuracy of at least .99 at every trained cell (streams of copies: a mean of .95 over the
  trained distances). The share of seeds that fit has an exact (Clopper-Pearson) interval; what doesn't fit enters no mean.
- **Intervals** over seeds are Student's t at 95 %, from three seeds on; those of a cell are Wilson's over sequences, or a
  bootstrap over sequences where each asks more than once.
- **Best**: the best seed, chosen on the very cells it is shown for; read it only beside the mean.
- **Differences**: the exact paired sign-flip test over the seeds where both arms fit, with Holm's correction over all
  contrasts of a panel, or those declared beforehand; beside the smallest p that so many pairs of seeds can reach. No arm is
  called higher unless the test carries it; "underpowered" where no outcome could.
- Of a paste the **first token**, which must resolve the distance, and the **rest**, which content can find, stand apart.
- **Free running** (`posgen evaluate --free-running`): token accuracy where the model reads its own pasted tokens instead of
  the right ones, as when it generates greedily. A sequence is right as a whole in both cases or in neither."""


def kept_to(run: pd.DataFrame, axis: str) -> float | None:
    """The largest length (distance) that one run keeps; None where even the first fails."""
    if metrics(run)[0] == "perplexity":
        curve = along(run, axis).groupby(axis)["perplexity"].mean()
        return max_solved(list((curve.iloc[0] / curve).items()), level=1 / MUCH_WORSE)
    tested = "test" if (run["split"] == "test").any() else "validation"
    some = run[run["split"].isin([tested, BEYOND[axis]])].dropna(subset=[axis])
    lows = some["exact_match_low"].astype(float).fillna(0.0)  # a cell without an answer is not kept
    return max_solved(list(zip(some[axis], lows, strict=True)))


def far(run: pd.DataFrame, metric: str) -> FarNumbers | None:
    """Study 2's numbers of one run; None where it was asked no distances."""
    some = along(run, "distance")
    if some.dropna(subset=[metric]).loc[some["distance"] >= 1, "distance"].nunique() < 2:
        return None
    mean = some.groupby("distance")[[metric, "chance", "ceiling"]].mean()
    key = next((key for key in baselines_beside(metric, run) if key.startswith("ngram_2")), None)
    ngram = some["baselines"].map(lambda all_: all_.get(key) if isinstance(all_, dict) else None)
    ngram = pd.to_numeric(ngram).groupby(some["distance"]).mean().dropna().to_dict()
    return far_numbers(
        {d: None if pd.isna(value) else value for d, value in mean[metric].items()},
        trained_range(run, "distance")[1],
        mean["chance"].fillna(0.0).to_dict(),
        mean["ceiling"].to_dict(),
        ngram if len(ngram) == len(mean) else None,
    )


def headline_table(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """(head, lines): per arm what its fitting seeds keep, and the means over the splits that hold something unseen."""
    shown, splits = metrics(table), [split for split in SPLITS if (table["split"] == split).any()]
    asked = [axis for axis in axes(table) if (table["split"] == BEYOND[axis]).any() and "exact_match_low" in table]
    head = ["arm", *(f"kept to {axis}" for axis in asked)]
    head += [f"{split}: {LABELS[metric]}" for split in splits for metric in shown]
    head += [f"best on {splits[0]}"] if splits else []
    lines = []
    for arm in encodings(table):
        mine = table[(table["arm"] == arm) & table["fit"]]
        if mine.empty:
            lines.append([arm, "did not fit", *["-"] * (len(head) - 2)])
            continue
        line = [arm, *(_kept(mine, axis) for axis in asked)]
        line += [
            over_seeds(_split_means(mine, split, metric), clip=metric in SHARES) for split in splits for metric in shown
        ]
        if splits:
            best = max if shown[0] in SHARES else min
            line.append(f"{best(_split_means(mine, splits[0], shown[0]), default=float('nan')):.2f}")
        lines.append(line)
    return head, lines


def run_numbers(run: pd.DataFrame) -> dict[str, str]:
    """{number: value} of one run, for its card; a run that does not fit has none."""
    if not run["fit"].all():
        return {}
    head, (line,) = headline_table(run)
    pairs = [(name, value) for name, value in zip(head, line, strict=True) if name != "arm" and "best" not in name]
    head, lines = far_table(run) or ([], [])
    for line in lines:
        numbers = dict(zip(head, line, strict=True))
        pairs += [(f"{name}: {numbers['of']}", numbers[name]) for name in head[2:] if "best" not in name]
    return {name: value for name, value in pairs if value != "-"}


def over_all_seeds(table: pd.DataFrame) -> str:
    """What the means would be over all seeds, for arms of which some did not fit."""
    out, shown = [], metrics(table)[0]
    for arm, (k, n) in fits(table).items():
        for split in SPLITS if 0 < k < n else ():
            values = _split_means(table[table["arm"] == arm], split, shown)
            if values:
                out.append(f"{arm}, {split}, over all {n} seeds: {over_seeds(values, clip=shown in SHARES)}")
    return "; ".join(out)


def _split_means(table: pd.DataFrame, split: str, metric: str) -> list[float]:
    some = table[table["split"] == split].dropna(subset=[metric])
    return some.groupby("seed")[metric].mean().tolist()


def _kept(table: pd.DataFrame, axis: str) -> str:
    values = [kept_to(run, axis) for _, run in table.groupby("seed")]
    last, low = along(table, axis)[axis].max(), trained_range(table, axis)[0]
    say = lambda v: f"below {low:g}" if v is None else f"≥ {v:g}" if v == last else f"{v:g}"  # noqa: E731
    ends = sorted(values, key=lambda v: -1.0 if v is None else v)
    return say(ends[0]) if ends[0] == ends[-1] else f"{say(ends[0])} to {say(ends[-1])}"


def far_table(table: pd.DataFrame) -> tuple[list[str], list[list[str]]] | None:
    """(head, lines): sum, P with its nulls and W per arm and metric; None where no distance was asked beyond."""
    if "distance" not in axes(table):
        return None
    asked = along(table, "distance")["distance"]
    head = ["arm", "of", f"sum, d {max(1, asked.min()):g} to {asked.max():g}", "best sum", "P", "P if it overshot by 5"]
    head += ["P of a 2-gram baseline", "W"]
    lines = []
    for arm in encodings(table):
        for metric in metrics(table):
            runs = [run for _, run in table[(table["arm"] == arm) & table["fit"]].groupby("seed")]
            numbers = [one for one in (far(run, metric) for run in runs) if one]
            if numbers:
                lines.append([arm, LABELS[metric], *_far_line(numbers)])
    return (head, lines) if lines else None


def _far_line(numbers: list[FarNumbers]) -> list[str]:
    column = lambda name: [v for v in (getattr(one, name) for one in numbers) if v is not None]  # noqa: E731
    why = next((one.invalid for one in numbers if one.invalid), "")
    first = lambda values: f"{values[0]:.2f}" if values else "-"  # noqa: E731
    return [
        over_seeds(column("total"), clip=False),
        f"{max(column('total')):.2f}",
        f"not valid: {why}" if why else over_seeds(column("ratio"), clip=False),
        first(column("overshoot")),
        first(column("ngram")),
        over_seeds(column("won"), clip=False),
    ]


def contrasts(table: pd.DataFrame, pairs: list[tuple[str, str]] | None = None) -> list[dict]:
    """Pairs of arms on one number each, the mean over the unseen cells of an axis, by the exact paired sign-flip test
    over the seeds where both fit, with Holm's correction over all contrasts of the panel. The verdict names a winner only
    where the test carries it: of accuracies the higher, of perplexities the lower. pairs: those declared beforehand
    (default: all). interval: Student's t of the paired difference. smallest_p: what so many pairs of seeds can reach at
    best, corrected too."""
    metric, found = metrics(table)[0], {}
    for axis in axes(table):
        unseen = table[table["fit"] & (table["split"] == BEYOND[axis])].dropna(subset=[metric])
        means = unseen.groupby(["arm", "seed"])[metric].mean()
        arms = [arm for arm in encodings(table) if arm in means.index.get_level_values(0)]
        for a, b in combinations(arms, 2) if pairs is None else pairs:
            if a in arms and b in arms and len(difference := (means[a] - means[b]).dropna()):
                found[f"{BEYOND[axis]}: {a} - {b}"] = (a, b, difference.to_numpy()[:20])
    adjusted = holm({name: sign_flip(d) for name, (_, _, d) in found.items()})
    out = []
    for name, (a, b, d) in found.items():
        mean = float(d.mean())
        if underpowered(len(d), len(found)):
            many = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((len(d), "pair"), (len(found), "contrast"))]
            verdict = f"underpowered: {many[0]} can't reach p < .05 in {many[1]}"
        elif adjusted[name] < 0.05:
            verdict = f"{b if mean > 0 else a} lower" if metric == "perplexity" else f"{a if mean > 0 else b} higher"
        else:
            verdict = "not told apart"
        out.append(
            {"contrast": name, "pairs": len(d), "difference": mean, "interval": t_interval(d)}
            | {"smallest_p": min(1.0, len(found) * smallest_p(len(d)))}
            | {"holm_p": adjusted[name], "verdict": verdict}
        )
    return out


def contrast_table(
    table: pd.DataFrame, pairs: list[tuple[str, str]] | None = None
) -> tuple[list[str], list[list[str]]] | None:
    """(head, lines) of `contrasts`; None where there is no pair."""
    lines = []
    for one in contrasts(table, pairs):
        low, high = one["interval"] or (None, None)
        difference = f"{one['difference']:+.3f}" + ("" if low is None else f" [{low:+.3f}, {high:+.3f}]")
        p = [f"{one[name]:.3f}" for name in ("holm_p", "smallest_p")]
        lines.append([one["contrast"], str(one["pairs"]), difference, *p, one["verdict"]])
    head = ["contrast", "pairs of seeds", "mean difference", "p (Holm)", "smallest p possible", "verdict"]
    return (head, lines) if lines else None
