"""Intervals over seeds and tests between arms; scipy does the mathematics."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import stats

Key = TypeVar("Key", bound=Hashable)
EXACT_PAIRS = 40  # beyond, 2^n arrangements can't be counted, not even as two halves of 2^(n/2)
DRAWS = 2**20  # of the Monte Carlo test: a standard error of at most .0005, and of .0002 at p = .05


@dataclass(frozen=True)
class SignFlip:
    """A p-value. error: its standard error where it is a Monte Carlo estimate; 0 where it is exact."""

    p: float
    error: float


def clopper_pearson(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact interval for the share of seeds that fit; (0, 1) where there are none."""
    if n == 0:
        return 0.0, 1.0
    interval = stats.binomtest(successes, n).proportion_ci(confidence, method="exact")
    return float(interval.low), float(interval.high)


def t_interval(values, confidence: float = 0.95) -> tuple[float, float] | None:
    """Return Student's t interval of a mean over seeds; None below 3 seeds, which are shown as points."""
    values = np.asarray(values, float)
    if len(values) < 3:
        return None
    spread = stats.sem(values)
    if spread < 1e-12:  # equal but for rounding
        return float(values.mean()), float(values.mean())
    low, high = stats.t.interval(confidence, len(values) - 1, values.mean(), spread)
    return float(low), float(high)


def sign_flip(differences) -> SignFlip:
    """Return the two-sided p of the paired sign-flip test of a mean of differences over seeds, all of them.

    It is the share of the 2^n arrangements of signs whose sum is at least as far from 0 as the one observed. Up to
    `EXACT_PAIRS` pairs they are counted, as pairs of the sums of two halves; beyond, `DRAWS` of them are drawn, and the
    observed one is counted among them (Phipson & Smyth 2010). Raises `ValueError` without pairs, and for NaN."""
    sizes = np.asarray(differences, float)
    if not len(sizes) or not np.isfinite(sizes).all():
        raise ValueError(f"the sign-flip test takes one finite difference or more, not {sizes.tolist()}")
    reached = abs(sizes.sum()) - 1e-12 * np.abs(sizes).sum()  # sums that are equal but for rounding count as reached
    if reached <= 0:
        return SignFlip(1.0, 0.0)
    if len(sizes) <= EXACT_PAIRS:
        half = len(sizes) // 2
        left, right = np.sort(_signed_sums(sizes[:half])), np.sort(_signed_sums(sizes[half:]))
        above = len(right) - np.searchsorted(right, reached - left[::-1])
        return SignFlip(min(1.0, 2 * int(above.sum()) / 2 ** len(sizes)), 0.0)
    rng, extreme = np.random.default_rng(0), 0
    for _ in range(DRAWS // 2**14):
        signs = rng.integers(0, 2, size=(2**14, len(sizes)), dtype=np.int8) * 2.0 - 1
        extreme += int((np.abs(signs @ sizes) >= reached).sum())
    p = (extreme + 1) / (DRAWS + 1)
    return SignFlip(p, math.sqrt(p * (1 - p) / DRAWS))


def _signed_sums(sizes: np.ndarray) -> np.ndarray:
    """Return the sums of all 2^n arrangements of signs."""
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return sums


def smallest_p(pairs: int) -> float:
    """Return the smallest p that the sign-flip test over so many pairs can reach."""
    return min(1.0, 2.0 / 2**pairs) if pairs <= EXACT_PAIRS else 1 / (DRAWS + 1)


def underpowered(pairs: int, contrasts: int = 1, level: float = 0.05) -> bool:
    """Return whether no outcome at all could be significant under Holm."""
    return smallest_p(pairs) * contrasts > level


def holm(p_values: dict[Key, float]) -> dict[Key, float]:
    """Return Holm's adjusted p-values, by name."""
    adjusted: dict[Key, float] = {}
    running = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        running = max(running, min(1.0, (len(p_values) - rank) * p))
        adjusted[name] = running
    return adjusted
