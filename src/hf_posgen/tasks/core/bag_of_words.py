"""What can be answered from the counts of the symbols alone, without any order."""

from functools import cache

import numpy as np
from scipy.stats import poisson

from .token_task import IGNORE


@cache
def bag_of_words(length: int, symbols: int) -> float:
    """Return the accuracy of naming the commonest of `length` uniform symbols, where each place is queried equally often:
    exactly E[largest count] / length."""
    return float(largest_count(length, length, symbols)[0] / length)


@cache
def mean_bag_of_words(first: int, last: int, symbols: int) -> float:
    """Return the mean of `bag_of_words` over the lengths first..last: of what a query at every place sees."""
    largest, n = [], first
    while n <= last:  # one octave at a time: the Poisson weights of a series hold for lengths near its rate
        top = min(2 * n - 1, last)
        largest.append(largest_count(n, top, symbols))
        n = top + 1
    return float((np.concatenate(largest) / np.arange(first, last + 1)).mean())


def largest_count(first: int, last: int, symbols: int) -> np.ndarray:
    """Return E[largest count] of n uniform draws among `symbols`, exactly, for n in first..last (last < 2 first).

    P(no count exceeds m) is read off the product of Poisson series cut at m, given that they sum to n.
    """
    n = np.arange(first, last + 1)
    rate, total, counts = (first + last) / 2 / symbols, np.zeros(len(n)), np.arange(last + 1)
    pmf, whole = poisson.pmf(counts, rate), poisson.pmf(n, rate * symbols)
    for m in range(last):
        product, power, base = np.eye(1, last + 1)[0], symbols, np.where(counts <= m, pmf, 0.0)
        while power:
            if power & 1:
                product = np.convolve(product, base)[: last + 1]
            base, power = np.convolve(base, base)[: last + 1], power >> 1
        exceeds = np.where(n > m, 1.0 - product[n] / whole, 0.0)
        total += exceeds
        if m > rate and exceeds.max() < 1e-12:
            break
    return total


def measured_bag_of_words(tokens_NT: np.ndarray, labels_NT: np.ndarray, symbols: int) -> float:
    """Return the accuracy, at the scored places, of naming the commonest data symbol so far (the latest of those that
    tie)."""
    right, scored = 0, labels_NT != IGNORE
    for rows in np.array_split(np.arange(len(tokens_NT)), max(1, tokens_NT.size * symbols // 2**24)):
        seen = np.cumsum(tokens_NT[rows, :, None] == np.arange(symbols), axis=1, dtype=np.int32)
        latest = np.arange(1, tokens_NT.shape[1] + 1)[:, None] * (tokens_NT[rows, :, None] == np.arange(symbols))
        latest = np.maximum.accumulate(latest, axis=1)
        guess = (seen * (tokens_NT.shape[1] + 1) + latest).argmax(-1)[:, :-1]
        right += int(((guess == labels_NT[rows, 1:]) & scored[rows, 1:]).sum())
    return right / max(1, int(scored.sum()))
