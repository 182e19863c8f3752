"""What can be copied without knowing a distance: the induction baselines."""

import numpy as np

from .base import IGNORE


def induction_baselines(tokens_NT: np.ndarray, labels_NT: np.ndarray) -> dict[str, float]:
    """Accuracy at the scored places of "what followed the last n tokens when they last stood here", for n = 1, and for
    n = 2 with n = 1 where two were never seen."""
    scored = labels_NT != IGNORE
    one, two = induction(tokens_NT, 1), induction(tokens_NT, 2)
    guess = {1: one, 2: np.where(two >= 0, two, one)}
    return {f"induction_{n}gram": float((g == labels_NT)[scored].mean()) for n, g in guess.items()}


def induction(tokens_NT: np.ndarray, n: int) -> np.ndarray:
    """(N, T): for each place the token after the latest earlier occurrence of the n tokens before it; -1 where none."""
    N, T = tokens_NT.shape
    same = np.ones((N, T, T), bool)  # [row, t, s]: the n tokens before t equal those before s
    for back in range(1, n + 1):
        shifted = np.full_like(tokens_NT, -1)
        shifted[:, back:] = tokens_NT[:, :-back]
        same &= (shifted[:, :, None] == shifted[:, None, :]) & (shifted[:, :, None] >= 0)
    same &= np.tri(T, k=-1, dtype=bool)
    latest = np.where(same, np.arange(T), -1).max(-1)
    found = np.take_along_axis(tokens_NT, np.maximum(latest, 0), 1)
    return np.where(latest >= 0, found, -1)
