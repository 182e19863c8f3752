"""The card and `eval.yaml` of a data set's repository, brought together with those of the configurations pushed before.

What we write of a card ends with a line that says so and holds a digest of it: what stands below that line is somebody's
own, and is kept; where the text above was edited, nothing is overwritten.
"""

import hashlib
import re

import yaml

LINE = re.compile(r"^<!-- hf_posgen wrote what stands above \(sha256:([0-9a-f]{12})\);.*-->$", re.M)
SHARD = re.compile(r"([^/]+)/\w+-\d{5}-of-\d{5}\.parquet")
OF_THE_DEFAULT = ("## Use", "## As a benchmark")  # sections that speak of the first configuration alone


def seal(card: str) -> str:
    """The card of an exported task with the line that ends our text."""
    head, body = _split(card)
    return _card(head, body, "")


def merge_dataset_card(new: str, old: str) -> str:
    """A sealed card of the configurations pushed, with those that are there already and with what others wrote.

    Of one configuration the new card counts; the default stays what it was while other configurations are there. Raises
    `ValueError` where the old metadata can't be read, and where our text there was edited."""
    (head, body), (was, text) = _split(new), _split(old)
    body, line, _ = _at_the_line(body)
    ours, line, below = _at_the_line(text)
    if line and line[1] != _digest(ours):
        raise ValueError(
            f"the README.md that is there was edited above its line '{line[0]}': move what was added below that line, "
            "or the push would overwrite it"
        )
    if not line:
        ours, below = "", text
    pushed = [one["config_name"] for one in head["configs"]]
    kept = [name for name in _by_name(was.get("configs")) if name not in pushed]
    return _card(_metadata(head, was, kept), _text(body, ours, kept), below)


def _split(card: str) -> tuple[dict, str]:
    """(metadata, text)."""
    found = re.match(r"---\n(.*?)^---\n?(.*)", card, re.M | re.S)
    try:
        head = yaml.safe_load(found[1]) or {} if found else {}
    except yaml.YAMLError as error:
        head = " ".join(str(error).split())
    if not isinstance(head, dict):
        raise ValueError(f"the metadata of the README.md that is there already can't be read ({head})")
    return head, (found[2] if found else card).strip()


def _at_the_line(text: str) -> tuple[str, re.Match | None, str]:
    """(what stands above our line, the line, what stands below)."""
    line = LINE.search(text)
    return (text[: line.start()].strip(), line, text[line.end() :].strip()) if line else (text, None, "")


def _card(head: dict, body: str, below: str) -> str:
    line = (
        f"<!-- hf_posgen wrote what stands above (sha256:{_digest(body)}); what stands below is kept by every push. -->"
    )
    parts = [body, line, below] if below else [body, line]
    return f"---\n{_dump(head)}---\n\n" + "\n\n".join(parts) + "\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _by_name(entries) -> dict[str, dict]:
    """Entries of `configs` or `dataset_info` by their configuration; one entry may stand without a list."""
    entries = entries if isinstance(entries, list) else [entries]
    return {one["config_name"]: one for one in entries if isinstance(one, dict) and "config_name" in one}


def _metadata(new: dict, old: dict, kept: list[str]) -> dict:
    """Everything that only the old metadata know, the configurations of both, and one default."""
    out = new | {key: value for key, value in old.items() if key not in ("configs", "dataset_info", "tags")}
    out["tags"] = list(dict.fromkeys([*new["tags"], *(old.get("tags") or [])]))
    if kept:
        default = next((name for name, one in _by_name(old["configs"]).items() if one.get("default")), None)
        for field in ("configs", "dataset_info"):
            both = _by_name(old.get(field)) | _by_name(new[field])
            out[field] = [{key: value for key, value in one.items() if key != "default"} for one in both.values()]
        default = default or new["configs"][0]["config_name"]
        flag = lambda one: {"config_name": default, "default": True} if one["config_name"] == default else {}  # noqa: E731
        out["configs"] = [flag(one) | one for one in out["configs"]]
    return out


def _text(new: str, old: str, kept: list[str]) -> str:
    """Our text, by sections: of a configuration that is kept the old one, and its rows in the table of files."""
    fresh, there = _sections(new), _sections(old)
    heading = lambda config: f"## `{config}`"  # noqa: E731
    stay = {one for one in map(heading, kept) if one in there}
    if not stay:
        return new
    configs = [one for one in there if one in stay or (one in fresh and one.startswith("## `"))]
    configs += [one for one in fresh if one.startswith("## `") and one not in configs]
    parts = [fresh[""], *(fresh.get(one) or there[one] for one in configs)]
    for one, text in fresh.items():
        if one == "## Files":
            source = {name[4:-1]: text if name in fresh else there.get(one, "") for name in configs}
            rows = [row for name, table in source.items() for row in _rows(table) if row.startswith(f"| {name}/")]
            parts.append("\n".join([*(line for line in text.splitlines() if line not in _rows(text)), *rows]))
        elif one and one not in configs:
            parts.append(there.get(one, text) if one in OF_THE_DEFAULT else text)
    return "\n\n".join(parts)


def _rows(table: str) -> list[str]:
    """The rows of the table of files."""
    return [line for line in table.splitlines() if re.match(r"\| \S+\.parquet ", line)]


def _sections(text: str) -> dict[str, str]:
    """{heading: section} in order; what comes before the first has the heading ""."""
    parts = re.split(r"^(?=## )", text, flags=re.M)
    return {part.partition("\n")[0] if part.startswith("## ") else "": part.strip() for part in parts}


def merge_benchmark(new: str, old: str) -> str:
    """An `eval.yaml` with the tasks of the configurations that are there and not pushed now; then the headline stays too.

    Raises `ValueError` where the old one can't be read."""
    fresh = yaml.safe_load(new)
    try:
        there = yaml.safe_load(old) or {}
        pushed = {task["config"] for task in fresh["tasks"]}
        kept = [task for task in there.get("tasks") or [] if task.get("config") not in pushed]
    except (yaml.YAMLError, AttributeError, TypeError) as error:
        raise ValueError(
            f"the eval.yaml that is there already can't be read ({' '.join(str(error).split())})"
        ) from None
    if not kept:
        return _dump(fresh | {key: value for key, value in there.items() if key not in fresh})
    replaced = {task["id"]: task for task in fresh["tasks"]}
    order = [
        replaced.pop(task.get("id"), task) for task in there["tasks"] if task in kept or task.get("id") in replaced
    ]
    return _dump(fresh | there | {"tasks": [*order, *replaced.values()]})


def _dump(tree: dict) -> str:
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
