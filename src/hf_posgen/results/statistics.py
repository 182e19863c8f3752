"""Intervals over seeds and tests between arms; scipy does the mathematics."""

import numpy as np
from scipy import stats


def clopper_pearson(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval for the share of seeds that fit; (0, 1) where there are none."""
    if n == 0:
        return 0.0, 1.0
    interval = stats.binomtest(successes, n).proportion_ci(confidence, method="exact")
    return float(interval.low), float(interval.high)


def t_interval(values, confidence: float = 0.95) -> tuple[float, float] | None:
    """Student's t interval of a mean over seeds; None below 3 seeds, which are shown as points."""
    values = np.asarray(values, float)
    if len(values) < 3:
        return None
    spread = stats.sem(values)
    if spread < 1e-12:  # equal but for rounding
        return float(values.mean()), float(values.mean())
    low, high = stats.t.interval(confidence, len(values) - 1, values.mean(), spread)
    return float(low), float(high)


def t_quantiles(most: int = 30, confidence: float = 0.95) -> list[float]:
    """Return the factors of `t_interval` for 1 to `most` degrees of freedom."""
    return [float(stats.t.ppf((1 + confidence) / 2, df)) for df in range(1, most + 1)]


def sign_flip(differences) -> float:
    """The exact two-sided paired sign-flip test of a mean of differences over seeds (all 2^n arrangements; n <= 20)."""
    d = np.asarray(differences, float)
    if not 1 <= len(d) <= 20:
        raise ValueError(f"the exact sign-flip test takes 1 to 20 pairs, not {len(d)}")
    if len(d) == 1:
        return 1.0  # scipy wants two; one pair can reach nothing else
    test = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf, batch=2**14)
    return float(test.pvalue)


def smallest_p(pairs: int) -> float:
    """The smallest p an exact sign-flip test over so many pairs can reach."""
    return min(1.0, 2.0 / 2**pairs)


def underpowered(pairs: int, contrasts: int = 1, level: float = 0.05) -> bool:
    """Whether no outcome at all could be significant under Holm."""
    return smallest_p(pairs) * contrasts > level


def holm(p_values: dict[str, float]) -> dict[str, float]:
    """Holm's adjusted p-values, by name."""
    adjusted, running = {}, 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        running = max(running, min(1.0, (len(p_values) - rank) * p))
        adjusted[name] = running
    return adjusted
