"""Cards of repositories: the metadata at their head, read as the Hub's own client reads it, and their text."""

from dataclasses import dataclass, field

import yaml
from huggingface_hub import DatasetCard, ModelCard
from huggingface_hub.repocard import REGEX_YAML_BLOCK

CLASSES = {"model": ModelCard, "dataset": DatasetCard}
THERE = "the README.md that is there already"


@dataclass
class Card:
    """A card that was read.

    data: the metadata, as the Hub's card class holds them.
    nodes: {key: its value as it is spelled}, so that what is kept of others is kept to the letter: `language: no` stays
    that, and 1.10 doesn't become 1.1.
    text: what follows the metadata."""

    data: object
    nodes: dict[str, yaml.Node] = field(default_factory=dict)
    text: str = ""

    def values(self, key: str) -> list:
        """Return a key's value as a list, where one value may stand without."""
        value = self.data.get(key)
        return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]

    def differing_from(self, other: "Card") -> dict[str, yaml.Node]:
        """Return the metadata that the other card lacks or holds otherwise, as they are spelled here."""
        theirs = {key: yaml.serialize(node) for key, node in other.nodes.items()}
        return {key: node for key, node in self.nodes.items() if yaml.serialize(node) != theirs.get(key)}

    def by_config(self, key: str) -> dict[str, dict]:
        """Return the entries of `configs` or `dataset_info` by their configuration."""
        return {
            entry["config_name"]: entry
            for entry in self.values(key)
            if isinstance(entry, dict) and isinstance(entry.get("config_name"), str)
        }


def read_card(content: str | bytes, kind: str, source: str = THERE) -> Card:
    """Return a card. kind: "model" or "dataset". Raises `ValueError`, which calls it `source`, where its metadata can't be
    read."""
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        block = REGEX_YAML_BLOCK.search(text)
        if block is None:
            return Card(CLASSES[kind].card_data_class(), {}, text.strip())
        card = CLASSES[kind](text)
        tree = yaml.compose(block[2], Loader=yaml.SafeLoader)
    except (ValueError, TypeError, yaml.YAMLError) as error:
        raise ValueError(f"the metadata of {source} can't be read ({' '.join(str(error).split())})") from None
    return Card(card.data, {key.value: value for key, value in tree.value} if tree else {}, card.text.strip())


def write_card(metadata: dict, text: str, kept: dict[str, yaml.Node]) -> str:
    """Return the text of a card. kept: metadata of others, as they spell them, in place of or beside ours."""
    tree = yaml.compose(yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True))
    keys = {key.value: (key, value) for key, value in tree.value}
    for name, value in kept.items():
        key = keys[name][0] if name in keys else yaml.ScalarNode("tag:yaml.org,2002:str", name)
        keys[name] = (key, value)
    tree.value = list(keys.values())
    head = yaml.serialize(tree, allow_unicode=True, width=1000)
    return f"---\n{head}---\n\n{text.strip()}\n"
