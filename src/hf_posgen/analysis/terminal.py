"""Results of analyses as text for a terminal."""

from .registry import summary

# Given, not measured.
SETTINGS = {"offset", "train_length", "trained_keys", "longest", "length", "keys", "right_key"}
SETTINGS |= {"layer", "head", "head_dim", "tolerance"}


def describe(results: dict) -> str:
    """Return a paragraph per analysis: what it tells, its plain numbers, and those of the first head."""
    lines = []
    for name, result in results.items():
        lines.append(f"{name}: {summary(name)}")
        if "not_applicable" in result:
            lines.append(f"  not applicable: {result['not_applicable']}")
            continue
        heads = result.get("heads") or [{}]
        for label, numbers in (("", result), ("first head: " if len(heads) > 1 else "", heads[0])):
            text = ", ".join(f"{key} {_number(value)}" for key, value in printed(numbers).items())
            lines += [f"  {label}{text}"] if text else []
    return "\n".join(lines)


def printed(numbers: dict) -> dict:
    """Return the single numbers and truth values among some results that were measured."""
    return {k: v for k, v in numbers.items() if isinstance(v, int | float | bool) and k not in SETTINGS}


def _number(value) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:.3g}"
