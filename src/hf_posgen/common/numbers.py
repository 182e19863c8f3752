"""Lists of whole numbers, written as lists or as text."""

import re

Numbers = tuple[int, ...]  # written as a list, or as text: "1-14,26-120"
MOST = 2**17  # numbers that one text may name


def numbers(text: str) -> Numbers:
    """Return the whole numbers that a text like "1-14, 26-120" names, in order. Raises `ValueError` for another text, and
    for one that names more than `MOST`."""
    out: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not match:
            raise ValueError(f"{text!r} is no list of whole numbers such as '1-14,26-120'")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"{text!r} names a range that ends before it begins; it must be like '1-14,26-120'")
        if len(out) + last - first >= MOST:
            raise ValueError(f"{text!r} names more than {MOST:,} numbers")
        out.extend(range(first, last + 1))
    return tuple(out)
