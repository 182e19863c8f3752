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
