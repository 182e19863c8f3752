"""The R blocks of study 2's stream: gaps between pairs, and what fills a pair.

Shape suffixes: N streams, K cycles, B blocks.
"""

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from scipy.stats import binom


@dataclass
class Blocks:
    """R blocks side by side: where each begins, whether it is there, and how many tokens they fill."""

    starts: np.ndarray  # (N, K, B)
    there: np.ndarray  # (N, K, B)
    length: np.ndarray  # (N, K)

    @property
    def data(self) -> np.ndarray:
        """(N, K): tokens that are no control token."""
        return self.length - self.there.sum(-1)


def joined(parts: list[Blocks]) -> Blocks:
    """Join them along the cycles; block axes of unequal width are padded with blocks that aren't there."""
    width = max(part.starts.shape[2] for part in parts)

    def padded(array: np.ndarray) -> np.ndarray:
        return np.pad(array, ((0, 0), (0, 0), (0, width - array.shape[2])))

    return Blocks(
        np.concatenate([padded(part.starts) for part in parts], 1),
        np.concatenate([padded(part.there) for part in parts], 1),
        np.concatenate([part.length for part in parts], 1),
    )


@cache
def _block_cdf(trials: int, probability: float) -> np.ndarray:
    return binom.cdf(np.arange(trials), trials, probability).astype(np.float32)


def _block_lengths(task, rng, shape) -> np.ndarray:
    """Draw 1 + ℓ, ℓ ~ Binomial: four times faster than numpy's own."""
    cdf = _block_cdf(task.block_trials, task.block_probability)
    return 1 + np.searchsorted(cdf, rng.random(shape, dtype=np.float32), side="right")


def gaps(task, rng, shape) -> Blocks:
    """Draw 1 to gap_blocks R blocks; "fresh" adds more until they hold enough data."""
    lengths = _block_lengths(task, rng, (*shape, task.gap_blocks))
    if "S" in task.kinds and task.even_source == "ensured":
        lengths = np.maximum(lengths, 2)  # the token before a mark is then never a pasted one, and may be changed
    ends = np.cumsum(lengths, -1)
    there = np.arange(task.gap_blocks) <= rng.integers(task.gap_blocks, size=(*shape, 1), dtype=np.int32)
    if task.source == "fresh":
        while True:
            held = ends - np.arange(1, ends.shape[-1] + 1)  # data up to and with each block
            there[..., 1:] |= held[..., :-1] < task.copied
            if (held[..., -1] >= task.copied).all():
                break
            more = _block_lengths(task, rng, (*shape, 1))
            ends = np.concatenate([ends, ends[..., -1:] + more], -1)
            there = np.concatenate([there, np.zeros_like(there[..., :1])], -1)
    starts = np.concatenate([np.zeros_like(ends[..., :1]), ends[..., :-1]], -1)
    return Blocks(starts, there, np.where(there, ends, 0).max(-1))


def fillers(task, rng, lengths_NK: np.ndarray) -> Blocks:
    """Draw R blocks that fill exactly these lengths: the last one cut, or all whole."""
    shape, longest = lengths_NK.shape, int(lengths_NK.max())
    if task.filler == "whole":
        return _whole_fillers(task, rng, lengths_NK, longest)
    ends = np.zeros((*shape, 0), np.int64)
    while longest and (ends.shape[-1] == 0 or (ends[..., -1] < lengths_NK).any()):
        blocks = 1 if ends.shape[-1] else 2 + int(longest / (1 + task.block_trials * task.block_probability))
        more = np.cumsum(_block_lengths(task, rng, (*shape, blocks)), -1)
        ends = np.concatenate([ends, more + ends[..., -1:]], -1) if ends.shape[-1] else more
    starts = np.concatenate([np.zeros((*shape, 1), np.int64), ends[..., :-1]], -1) if longest else ends
    return Blocks(starts, starts < lengths_NK[..., None], lengths_NK)


@lru_cache(maxsize=16)
def _whole_cdf(trials: int, probability: float, longest: int) -> np.ndarray:
    """Return [n, b - 1]: P(the first of whole blocks that sum to n is b long or shorter)."""
    p = np.concatenate([[0.0], binom.pmf(np.arange(trials + 1), trials, probability)])
    hit = np.zeros(longest + 1)  # P(some whole number of blocks sums to n)
    hit[0] = 1.0
    table = np.ones((longest + 1, trials + 1))
    for n in range(1, longest + 1):
        ways = np.array([p[b] * hit[n - b] if b <= n else 0.0 for b in range(1, trials + 2)])
        hit[n] = ways.sum()
        table[n] = np.cumsum(ways) / hit[n]
        table[n, min(n, trials + 1) - 1 :] = 1.0
    return table


def _whole_fillers(task, rng, lengths_NK: np.ndarray, longest: int) -> Blocks:
    cdf, left, starts, there = _whole_cdf(task.block_trials, task.block_probability, longest), lengths_NK, [], []
    while (left > 0).any():
        starts.append(lengths_NK - left)
        there.append(left > 0)
        block = 1 + (rng.random(left.shape)[..., None] >= cdf[left]).sum(-1)
        left = np.where(left > 0, left - block, 0)
    if not starts:
        return Blocks(np.zeros((*left.shape, 0), np.int64), np.zeros((*left.shape, 0), bool), lengths_NK)
    return Blocks(np.stack(starts, -1), np.stack(there, -1), lengths_NK)
