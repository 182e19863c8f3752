"""Perplexity by position, as plain numpy."""

import numpy as np

IGNORE = -100


def bucket_means(places_n, nats_n, bucket: int = 1, size: int | None = None) -> dict[str, np.ndarray]:
    """Return (P,) arrays over buckets of `bucket` positions, as many as there are or `size`: start, count, and the
    mean nats of the tokens that stand there (NaN where there are none)."""
    buckets = np.asarray(places_n, np.int64) // bucket
    count = np.bincount(buckets, minlength=size or 0)
    total = np.bincount(buckets, nats_n, minlength=size or 0)
    with np.errstate(invalid="ignore"):
        return {"start": np.arange(len(count)) * bucket, "count": count, "nats": total / count}


def nats_by_position(nats, labels, bucket: int = 1) -> dict[str, np.ndarray]:
    """Return (P,) arrays over buckets of `bucket` positions: start, count, and the mean nats of the scored tokens
    (NaN where none is scored).

    nats, labels: N sequences, aligned; nats[i][t] is the negative log-likelihood of labels[i][t], read only where that is
    not -100. Raises `ValueError` for a bucket below 1, sequences of different lengths, and nats that are no numbers.
    """
    if bucket < 1:
        raise ValueError(f"bucket is {bucket}; it must be at least 1")
    for i, (values, targets) in enumerate(zip(nats, labels, strict=True)):
        if len(values) != len(targets):
            raise ValueError(f"sequence {i} has {len(values)} nats for {len(targets)} labels; they must be aligned")
    longest = max((len(one) for one in labels), default=0)
    all_places, all_nats = [np.zeros(0, np.int64)], [np.zeros(0)]
    for i, (values, targets) in enumerate(zip(nats, labels, strict=True)):
        places = np.nonzero(np.asarray(targets) != IGNORE)[0]
        scored = np.asarray(values, float)[places]
        if np.isnan(scored).any():
            raise ValueError(f"sequence {i} has a scored token whose nats are not a number")
        all_places.append(places)
        all_nats.append(scored)
    return bucket_means(np.concatenate(all_places), np.concatenate(all_nats), bucket, -(-longest // bucket))
