"""The words beside tables and figures: what was compared, and what of it was trained."""

from ..results.columns import label
from ..results.panel import Panel


def facts(panel: Panel) -> str:
    """Return what every figure must say: the size of the models, the anchor token, seeds and counts."""
    table, words = panel.table, []
    if "parameters" in table:
        low, high = int(table["parameters"].min()), int(table["parameters"].max())
        words.append(f"{low:,} parameters" if low == high else f"{low:,} to {high:,} parameters")
    if "bos" in table:
        anchors = {bool(value) for value in table["bos"]}
        words.append(
            "anchor token in some arms" if len(anchors) > 1 else f"{'an' if True in anchors else 'no'} anchor token"
        )
    words.append(_range(sorted({seeds for _, seeds in panel.fits.values()}), "seed"))
    if "count" in table:
        words.append(_range(sorted(int(count) for count in table["count"].unique()), "sequence") + " per cell")
    return ", ".join(words)


def _range(numbers: list[int], word: str) -> str:
    span = f"{numbers[0]:,}" if numbers[0] == numbers[-1] else f"{numbers[0]:,} to {numbers[-1]:,}"
    return f"{span} {word}{'' if numbers[-1] == 1 else 's'}"


def caption(panel: Panel, axis: str, metric: str) -> str:
    """Return what a table shows, and what of it was trained."""
    ranges = [f"{low:g} to {high:g}" if low < high else f"{low:g}" for low, high in panel.trained_ranges(axis)]
    return f"{label(metric)} by {axis} (trained: {' and '.join(ranges)})"
