"""The headline numbers of an extrapolation, from accuracies by cell. Plain Python; a curve is {distance: accuracy}.

- *solved up to*: the largest length (distance) up to which the lower bound of exact match is at least .9 at every cell.
- *sum* (Nevermann & Gros 2026): accuracy summed over the distances evaluated, from 1 on (theirs end at 120).
- *P* (theirs too): of that sum, what lies beyond the trained distances over what lies up to their end. It means
  something only where every distance from 1 on was evaluated, until accuracy has reached its floor. It falls with a wider
  trained range by construction, so it is never shown without its two nulls: a model that overshoots by five tokens whatever
  it was trained on, and one that looks its answer up by content and is blind to distance.
- *W*: accuracy beyond the trained distances above the floor, as a share of what can be known, summed: the number of
  distances won.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

FLOOR_TOLERANCE = 0.05
OVERSHOOT = 5  # tokens

Curve = dict[float, float]


def max_solved(cells: list[tuple[float, float]], level: float = 0.9) -> float | None:
    """Return, of (coordinate, lower bound) pairs, the largest coordinate up to which the bound is at least `level` at
    *every* cell; None where the first fails. A bound that is not a number fails."""
    worst: dict[float, float] = {}
    for coordinate, low in cells:
        worst[coordinate] = min(worst.get(coordinate, math.inf), -math.inf if math.isnan(low) else low)
    solved = None
    for coordinate in sorted(worst):
        if worst[coordinate] < level:
            break
        solved = coordinate
    return solved


def ratio_beyond(curve: Curve, trained_max: float) -> float | None:
    """Return P = sum over d > trained_max of accuracy / sum over d <= trained_max; None without both parts."""
    inside = sum(value for d, value in curve.items() if d <= trained_max)
    beyond = [value for d, value in curve.items() if d > trained_max]
    return sum(beyond) / inside if beyond and inside > 0 else None


def overshoot_ratio(distances, trained_max: float, floor: Callable[[float], float], tokens: int = OVERSHOOT):
    """Return the P of a model that is right up to `tokens` beyond what it was trained on, and at its floor from there."""
    return ratio_beyond({d: 1.0 if d <= trained_max + tokens else floor(d) for d in distances}, trained_max)


def share_beyond(curve: Curve, trained_max: float, floor: Curve, ceiling: Curve) -> float | None:
    """Return W = sum over d > trained_max of (accuracy - floor) / (ceiling - floor); None where nothing was evaluated
    beyond, or where floor and ceiling meet."""
    beyond = [d for d in curve if d > trained_max]
    if not beyond or any(ceiling[d] <= floor[d] for d in beyond):
        return None
    return sum((curve[d] - floor[d]) / (ceiling[d] - floor[d]) for d in beyond)


@dataclass(frozen=True)
class FarNumbers:
    """Study 2's numbers of one curve, in distances. `invalid` says why `ratio` (P) means nothing, or is empty."""

    total: float
    ratio: float | None
    invalid: str
    overshoot: float | None
    ngram: float | None
    won: float | None


def far_numbers(
    curve: dict[float, float | None],
    trained_max: float,
    floor: Curve,
    ceiling: Curve,
    ngram: Curve | None = None,
) -> FarNumbers:
    """Return all of them at once, from distance 1 on; None in the curve: that distance was to be evaluated and has no
    answer. floor, ceiling and ngram (what a 2-gram baseline scores) are curves over the same distances. Raises `ValueError`
    for a curve without an answer, and for numbers that are not finite."""
    for name, values in (("accuracy", curve), ("floor", floor), ("ceiling", ceiling), ("ngram", ngram or {})):
        for distance, value in values.items():
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} at distance {distance} is {value}; it must be a finite number")
    farthest = max(curve, default=0)
    curve, ngram = ({d: v for d, v in (one or {}).items() if d >= 1 and v is not None} for one in (curve, ngram))
    if not curve:
        raise ValueError("there is no distance to sum over")
    return FarNumbers(
        total=sum(curve.values()),
        ratio=ratio_beyond(curve, trained_max),
        invalid=_why_invalid(curve, farthest, trained_max, floor),
        overshoot=overshoot_ratio(curve, trained_max, floor.__getitem__),
        ngram=ratio_beyond(ngram, trained_max) if ngram else None,
        won=share_beyond(curve, trained_max, floor, ceiling),
    )


def _why_invalid(curve: Curve, farthest: float, trained_max: float, floor: Curve) -> str:
    """farthest: up to where answers were wanted. Never empty where there is no P."""
    last = max(curve)
    if last <= trained_max:
        return "no distance beyond the trained range was evaluated"
    if not any(d <= trained_max for d in curve):
        return "no distance up to the end of the trained range was evaluated"
    gaps = sorted(set(range(1, int(farthest) + 1)) - set(curve))
    if gaps:
        return (
            f"distance {gaps[0]} was not evaluated" if len(gaps) == 1 else f"{len(gaps)} distances were not evaluated"
        )
    if not any(value for d, value in curve.items() if d <= trained_max):
        return "accuracy is 0 up to the end of the trained range"
    if curve[last] > floor[last] + FLOOR_TOLERANCE:
        return f"accuracy has not reached its floor at distance {last:g}"
    return ""
