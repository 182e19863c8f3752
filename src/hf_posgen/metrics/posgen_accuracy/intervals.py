"""Intervals of shares; scipy does the mathematics."""

import numpy as np
from scipy import stats


def wilson(successes: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval for a share of n sequences; (0, 1) where there are none."""
    if n == 0:
        return 0.0, 1.0
    interval = stats.binomtest(round(successes), n).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)


def bootstrap_ratio(
    correct_N: np.ndarray, scored_N: np.ndarray, confidence: float = 0.95, draws: int = 400, seed: int = 0
) -> tuple[float, float]:
    """Return the percentile bootstrap over *sequences* of Σ correct / Σ scored: tokens within one are not independent.

    Sequences alike in (correct, scored) are drawn together, as multinomial counts. A share of exactly 0 or 1 has no
    spread to draw from: Wilson's interval over sequences then. Raises `ValueError` for NaN."""
    if np.isnan(correct_N).any() or np.isnan(scored_N).any():
        raise ValueError("a sequence's count is not a number")
    if scored_N.sum() == 0:
        return 0.0, 1.0
    pairs, counts = np.unique(np.stack([correct_N, scored_N]), axis=1, return_counts=True)
    if correct_N.sum() in (0, scored_N.sum()):
        n = int((scored_N > 0).sum())
        return wilson(n if correct_N.sum() else 0, n, confidence)
    weights = np.random.default_rng(seed).multinomial(len(correct_N), counts / counts.sum(), size=draws)
    ratios = (weights @ pairs[0]) / np.maximum(weights @ pairs[1], 1)
    low, high = np.quantile(ratios, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def share(name: str, correct_N: np.ndarray, scored_N: np.ndarray) -> dict[str, float | None]:
    """Return {name, name_low, name_high}: a share with its interval, Wilson's over sequences where each has at most
    one answer, else a bootstrap over sequences; None where nothing is scored."""
    if scored_N.sum() == 0:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    if scored_N.max() <= 1:
        low, high = wilson(correct_N.sum(), int(scored_N.sum()))
    else:
        low, high = bootstrap_ratio(correct_N, scored_N)
    return {name: float(correct_N.sum() / scored_N.sum()), f"{name}_low": low, f"{name}_high": high}
