"""Names that aren't there. Imports nothing heavy."""

import difflib
from collections.abc import Iterable


def unknown(kind: str, given, allowed: Iterable, prefix: str = "") -> ValueError:
    """The error for a name that isn't there: what was given, the nearest, and what is allowed. `prefix` stands before the
    names wherever one is quoted: the path of a key."""
    names = [str(name) for name in allowed]
    near = difflib.get_close_matches(str(given), names, n=1)
    quoted = lambda name: repr(f"{prefix}{name}") if prefix else repr(name)  # noqa: E731
    hint = f" (did you mean {quoted(near[0])}?)" if near else ""
    return ValueError(f"unknown {kind} {quoted(given)}{hint}; allowed: {', '.join(names)}")


def pairs_of_arms(given, arms: Iterable[str]) -> list[tuple[str, str]]:
    """The contrasts that were declared: pairs of two arms, as lists or as "one:other". Raises `ValueError` for anything
    else, an unknown arm, and a pair that is there twice, which would count twice in the correction."""
    arms, out = list(arms), []
    for one in given if isinstance(given, list) else [given]:
        pair = tuple(one.split(":")) if isinstance(one, str) else tuple(one) if isinstance(one, list | tuple) else ()
        if len(set(pair)) != 2 or len(pair) != 2:
            raise ValueError(
                f"contrast {one!r} names no two arms; it must be a pair, such as [none, rope] or none:rope"
            )
        for arm in pair:
            if arm not in arms:
                raise unknown("arm", arm, arms)
        if pair in out or pair[::-1] in out:
            raise ValueError(
                f"the contrast of {pair[0]} and {pair[1]} is declared twice; once is enough, either way round"
            )
        out.append(pair)
    return out
