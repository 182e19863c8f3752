"""The card and `eval.yaml` of a data set's repository: rendered anew from the manifests of all its configurations.

What others wrote is kept by one rule, in the exported folder and on the Hub: their metadata, and the text below the line
that ends ours. Where our text above that line was edited, nothing is overwritten.
"""

import yaml

from ..common.yaml_text import parse_yaml
from ..tasks.dataset.card import dataset_card
from ..tasks.dataset.manifest import MANIFEST, Manifest, read_manifest
from ..tasks.dataset.published import benchmark_file
from ..tasks.dataset.seal import notes_of
from .cards import Card, read_card, write_card
from .repo import Remote

OURS = ("configs", "dataset_info", "tags")  # metadata that are ours and others' at once


def merge_dataset(pushed: dict[str, Manifest], local: Card, repo_id: str, there: Remote) -> dict[str, bytes]:
    """Return README.md and eval.yaml of a repository after a push.

    pushed: {configuration: manifest}. local: the card of the exported folder, to which somebody may have added as well.
    Raises `ValueError` where what is there can't be read, was edited where we write, or is another task's."""
    old = read_card(there.read("README.md") or b"", "dataset")
    manifests = _together(pushed, _kept(pushed, there), old)
    name = next(iter(pushed.values())).name
    notes = [notes_of(local.text, "the README.md of the exported folder")]
    notes += [notes_of(old.text, "the README.md that is there")]
    notes = notes[1:] if notes[0] in notes[1] else notes
    text = dataset_card(name, manifests, repo_id, "\n\n".join(filter(None, notes)))
    card = read_card(text, "dataset")
    kept = {key: node for one in (local, old) for key, node in one.differing_from(card).items() if key not in OURS}
    splits = {config: list(manifest.splits) for config, manifest in manifests.items()}
    benchmark = benchmark_file(repo_id.split("/")[-1], splits)
    return {
        "README.md": write_card(_metadata(card, [local, old]), card.text, kept).encode(),
        "eval.yaml": merge_benchmark(benchmark, set(splits), there.read("eval.yaml") or b"").encode(),
    }


def _kept(pushed: dict[str, Manifest], there: Remote) -> dict[str, Manifest]:
    """Return the manifests of the configurations that are there and not pushed now."""
    name, kept = next(iter(pushed.values())).name, {}
    for path in there.files:
        config, _, file = path.partition("/")
        if file == MANIFEST and config not in pushed:
            kept[config] = read_manifest(there.read(path).decode(errors="replace"), path)
            if kept[config].name != name:
                raise ValueError(
                    f"{path} belongs to task {kept[config].name!r}, not {name!r}: push to another repository"
                )
    return kept


def _together(pushed: dict[str, Manifest], kept: dict[str, Manifest], old: Card) -> dict[str, Manifest]:
    """Return all manifests, the default first. The default and the order stay as they are while other configurations are
    there; else they are those of the push."""
    if not kept:
        return pushed
    both, entries = kept | pushed, old.by_config("configs")
    default = [name for name, entry in entries.items() if entry.get("default")]
    return {name: both[name] for name in dict.fromkeys([*default, *entries, *both]) if name in both}


def _metadata(card: Card, others: list[Card]) -> dict:
    """Return our metadata, with the tags of others and the configurations that have no manifest of ours."""
    values = card.data.to_dict()
    data = {key: values[key] for key in card.nodes}
    data["tags"] = list(dict.fromkeys([tag for one in (card, *others) for tag in one.values("tags")]))
    for key in ("configs", "dataset_info"):
        data[key] = [*card.by_config(key).values()]
        foreign = {name: entry for one in others for name, entry in one.by_config(key).items()}
        data[key] += [entry for name, entry in foreign.items() if name not in card.by_config(key)]
    if any(entry.get("default") for entry in data["configs"][len(card.by_config("configs")) :]):
        data["configs"][0].pop("default")
    return data


def merge_benchmark(ours: str, configs: set[str], old: bytes) -> str:
    """Return an `eval.yaml` with ours, and with the keys and the tasks of others.

    configs: the configurations that ours lists. Raises `ValueError` where the old one can't be read."""
    new = parse_yaml(ours)
    try:
        there = parse_yaml(old.decode("utf-8-sig"), "it") or {}
        foreign = [task for task in there.get("tasks") or [] if task.get("config") not in configs]
    except (ValueError, AttributeError, TypeError) as error:
        line = " ".join(str(error).split())
        raise ValueError(f"the eval.yaml that is there already can't be read ({line})") from None
    merged = new | {key: value for key, value in there.items() if key not in new}
    return yaml.safe_dump(merged | {"tasks": new["tasks"] + foreign}, sort_keys=False, allow_unicode=True)
