"""What can be copied without knowing a distance: the n-gram baselines."""

import numpy as np

from ...metrics.functional import score


def ngram_baselines(
    tokens_NT: np.ndarray, labels_NT: np.ndarray, read_NT: np.ndarray | None = None
) -> dict[str, float]:
    """Return the accuracy of "what followed the last n tokens when they last stood here", for n = 1, and for n = 2 with
    n = 1 where two were never seen: over all pasted tokens, and (`_rest`) over those after the first of a paste, which it
    can find.

    read_NT: which tokens the baseline reads, the others it skips; None: all. A strategy that is blind to distances still
    knows which tokens are never pasted: with these in the way it would be weaker than it need be.
    """
    one, two = (_guess_of_read(tokens_NT, n, read_NT) for n in (1, 2))
    out = {}
    for n, guess in ((1, one), (2, np.where(two >= 0, two, one))):
        counts = {key: int(values.sum()) for key, values in score(guess, labels_NT, paste=True).items()}
        out[f"ngram_{n}"] = counts["tokens_correct"] / max(1, counts["tokens_scored"])
        out[f"ngram_{n}_rest"] = counts["rest_correct"] / max(1, counts["rest_scored"])
    return out


def _guess_of_read(tokens_NT: np.ndarray, n: int, read_NT: np.ndarray | None) -> np.ndarray:
    """Return `ngram_guess` among the tokens that are read, (N, T) at the places of all."""
    if read_NT is None:
        return ngram_guess(tokens_NT, n)
    order = np.argsort(
        ~read_NT, axis=1, kind="stable"
    )  # the read ones to the front: no guess looks at what comes later
    guess = ngram_guess(np.take_along_axis(tokens_NT, order, 1), n)
    read_before = np.cumsum(read_NT, 1) - read_NT
    return np.take_along_axis(guess, read_before, 1)


def ngram_guess(tokens_NT: np.ndarray, n: int) -> np.ndarray:
    """Return (N, T): for each place the token after the latest earlier occurrence of the n tokens before it; -1 where
    none."""
    N, T = tokens_NT.shape
    size = int(tokens_NT.max()) + 1
    context = np.broadcast_to(np.arange(N)[:, None], (N, T - n)).astype(np.int64)  # never found in another row
    for back in range(n):
        context = context * size + tokens_NT[:, back : T - n + back]
    order = np.argsort(context.ravel(), kind="stable")
    again = np.diff(context.ravel()[order], prepend=-1) == 0
    following = tokens_NT[:, n:].ravel()
    guess = np.full(following.shape, -1, np.int64)
    guess[order[again]] = following[order[np.flatnonzero(again) - 1]]
    return np.hstack([np.full((N, n), -1, np.int64), guess.reshape(N, T - n)])
