"""Results of analyses as text for a terminal."""

from .registry import summary

# Given, not measured; and counts by key, which are too many to read.
LEFT_OUT = {"offset", "train_length", "trained_keys", "longest", "length", "keys", "right_key"}
LEFT_OUT |= {"layer", "head", "head_dim", "tolerance", "strongest"}


def describe(results: dict) -> str:
    """Return a paragraph per analysis: what it tells, its single numbers, and those of the first head."""
    lines = []
    for name, result in results.items():
        lines.append(f"{name}: {summary(name)}")
        if "not_applicable" in result:
            lines.append(f"  not applicable: {result['not_applicable']}")
            continue
        heads = result.get("heads") or [{}]
        groups = printed(result) | {
            f"first head{path and f', {path}'}" if len(heads) > 1 else path: numbers
            for path, numbers in printed(heads[0]).items()
        }
        for path, numbers in groups.items():
            text = ", ".join(f"{key} {_number(value)}" for key, value in numbers.items())
            lines.append(f"  {path}: {text}" if path else f"  {text}")
        if not groups:
            lines.append("  lists only: they are in analysis.json")
    return "\n".join(lines)


def printed(numbers: dict, path: str = "") -> dict[str, dict]:
    """Return what a terminal shows of some results: {where they are nested: {name: number or truth value}}."""
    kept = {key: value for key, value in numbers.items() if key not in LEFT_OUT}
    single = {key: value for key, value in kept.items() if isinstance(value, int | float)}
    groups = {path: single} if single else {}
    for key, value in kept.items():
        if isinstance(value, dict):
            groups |= printed(value, f"{path} {key}".strip())
    return groups


def _number(value) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:.3g}"
