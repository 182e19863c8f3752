"""What the figures of the analyses share."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def panels(count: int, width: float = 4.4, height: float = 3.4, columns: int | None = None):
    """A figure with axes side by side, in rows of `columns`; each of them `width` x `height` inches."""
    columns = min(count, columns or count)
    rows = -(-count // columns)
    size = (width * columns, height * rows)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for ax in grid.flat[:count]:
        ax.grid(alpha=0.25, lw=0.5)
    for ax in grid.flat[count:]:
        ax.remove()
    return figure, grid.flat[:count]


def mark(ax, train_length: int, offset: int | None = None) -> None:
    """Shade the trained offsets, and mark the asked one."""
    ax.axvspan(-0.5, train_length - 0.5, color="#f2e6b8", zorder=0, label="trained")
    if offset is not None:
        ax.axvline(offset, color="#555555", lw=0.9, ls="--", label=f"k = {offset}")


def lengths_axis(ax, train_length: int) -> None:
    """Sequence lengths on a log axis, the trained ones shaded."""
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
    ax.axvspan(ax.get_xlim()[0], train_length, color="#f2e6b8", zorder=0)
    ax.set_xlabel("length (tokens)")


def head_name(entry: dict) -> str:
    return f"layer {entry['layer']}, head {entry['head']}"
