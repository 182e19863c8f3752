"""Cards that people wrote: read as the Hub reads them, and kept, whatever their shape."""

import pytest
import yaml

from hf_posgen.hub.cards import read_card
from hf_posgen.hub.merge_dataset_card import merge_dataset
from hf_posgen.hub.merge_model_card import merge_card
from hf_posgen.tasks import build_task, config_spec, dataset_card
from hf_posgen.tasks.dataset.manifest import describe

HEAD = "license: mit\nlanguage: en\ntags:\n- medical\n- ours too\n"
NOTE = "Text by hand — with ümlauts, 漢字 and a rule:\n\n---\n\nThe end."
PLAIN = f"---\n{HEAD}---\n\n{NOTE}\n"
SHAPES = {
    "as we write it": PLAIN,
    "after blank lines": f"\n \n{PLAIN}",
    "Windows line ends": PLAIN.replace("\n", "\r\n"),
    "old Macintosh line ends in the metadata": PLAIN.replace("\n", "\r"),
    "a byte order mark": f"\ufeff{PLAIN}",
    "all of these": f"\ufeff\n{PLAIN}".replace("\n", "\r\n"),
    "spaces after the rule that ends it": PLAIN.replace("\n---\n\nText", "\n---  \n\nText"),
    "a comment": PLAIN.replace("license: mit", "# whose?\nlicense: mit  # theirs"),
    "JSON": f'---\n{{"license": "mit", "language": "en", "tags": ["medical", "ours too"]}}\n---\n\n{NOTE}\n',
    "quoted": PLAIN.replace("mit", "'mit'").replace("en\n", '"en"\n'),
}
PUSHED = {"last_k3": describe(build_task(config_spec("fixed_offset", "last_k3")))}
EXPORTED = read_card(dataset_card("fixed_offset", PUSHED), "dataset")
MODEL = "---\nlicense: apache-2.0\ntags:\n- hf_posgen\nmodel-index:\n- name: x\n  results: []\n---\n\n# Ours\n"


class There:
    """A revision that holds some files."""

    def __init__(self, files: dict[str, bytes]):
        self.files = files

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)


def merged(card: str | bytes) -> dict[str, str]:
    content = card if isinstance(card, bytes) else card.encode()
    out = merge_dataset(PUSHED, EXPORTED, "me/data", There({"README.md": content}))
    return {path: data.decode() for path, data in out.items()}


def head(card: str) -> dict:
    return yaml.safe_load(card.split("---\n")[1])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_data_set_card_of_any_shape_keeps_what_its_author_wrote(shape):
    card = merged(SHAPES[shape])["README.md"]
    data = head(card)
    assert (data["license"], data["language"]) == ("mit", "en")
    assert data["tags"][0] == "hf_posgen" and data["tags"][-2:] == ["medical", "ours too"]
    assert card.endswith(f"-->\n\n{NOTE}\n") and card.count("license:") == 1 and "## `last_k3`" in card
    assert merged(card)["README.md"] == card, "again: nothing changes"
    assert merged(card.replace("\n", "\r\n"))["README.md"] == card, "an editor's line ends are no edit of our text"


@pytest.mark.parametrize("shape", SHAPES)
def test_a_model_card_of_any_shape_keeps_the_metadata_of_others(shape):
    card = merge_card(MODEL, SHAPES[shape].encode())
    data = head(card)
    assert (data["license"], data["language"]) == ("mit", "en") and data["tags"] == ["hf_posgen", "medical", "ours too"]
    assert merge_card(MODEL, card) == card


VALUES = {
    "tags: medical": ("tags", "medical"),
    "tags: [medical]": ("tags", "medical"),
    "tags:\n- medical\n- medical": ("tags", "medical"),
    "tags:": None,
    "language: no": "language: no\n",
    "language:\n- no\n- on": "language:\n- no\n- on\n",
    "version: 1.10": "version: 1.10\n",
    "date: 2026-01-02": "date: 2026-01-02\n",
    "license: [mit, 'other']": "license: [mit, 'other']\n",
    "pretty_name: 漢字 — ü": "pretty_name: 漢字 — ü\n",
    "extra_gated_prompt: |\n  One: two\n  # three": "extra_gated_prompt: |-\n  One: two\n  # three\n",
}


@pytest.mark.parametrize("line", VALUES)
@pytest.mark.parametrize("kind", ["model", "dataset"])
def test_values_of_any_kind_are_kept_as_they_are_spelled(line, kind):
    old = f"---\n{line}\n---\n"
    card = merge_card(MODEL, old) if kind == "model" else merged(old)["README.md"]
    expected = VALUES[line]
    if isinstance(expected, str):
        assert f"\n{expected}" in card and card.count(line.split(":")[0] + ":") == 1
    elif expected:
        assert head(card)[expected[0]].count(expected[1]) == 1
    assert all(isinstance(tag, str) and len(tag) > 1 for tag in head(card)["tags"]), "a word is no list of letters"


@pytest.mark.parametrize(
    "card", ["# By hand\n", "---\n\n---\n\n# By hand\n", "", "\ufeff# By hand\r\n", "---\n# By hand\n"]
)
def test_a_card_without_metadata_is_kept_as_text(card):
    text = merged(card)["README.md"]
    assert text.endswith("# By hand\n" if card else "-->\n") and head(text)["license"] == "apache-2.0"


@pytest.mark.parametrize(
    "card", [b"---\n- a\n---\n", b"---\n[\n---\n", b"---\n1: x\n---\n", b"---\na: \xfc\n---\n", b"---\n'a\n---\n"]
)
def test_metadata_that_cannot_be_read_stop_the_push(card):
    for merge in (merged, lambda old: merge_card(MODEL, old)):
        with pytest.raises(
            ValueError, match=r"^the metadata of the README.md that is there already can't be read \(.+\)$"
        ):
            merge(card)


def test_configurations_of_others_are_kept_and_one_entry_may_stand_without_a_list():
    old = "---\nconfigs: {config_name: theirs, data_files: 'theirs/*.csv', default: true}\n---\n"
    data = head(merged(old)["README.md"])
    assert [(one["config_name"], one.get("default")) for one in data["configs"]] == [
        ("last_k3", None),
        ("theirs", True),
    ]
    assert [one["config_name"] for one in data["dataset_info"]] == ["last_k3"]


def test_what_somebody_added_to_the_exported_card_travels_once():
    local = read_card(dataset_card("fixed_offset", PUSHED, notes="My notes.").replace("apache-2.0", "mit"), "dataset")
    there = There({"README.md": merged("---\nlanguage: en\n---\n\nOn the Hub.\n")["README.md"].encode()})
    card = merge_dataset(PUSHED, local, "me/data", there)["README.md"].decode()
    assert card.endswith("-->\n\nMy notes.\n\nOn the Hub.\n") and head(card)["license"] == "mit"
    again = merge_dataset(PUSHED, local, "me/data", There({"README.md": card.encode()}))["README.md"].decode()
    assert again == card
    edited = read_card(dataset_card("fixed_offset", PUSHED).replace("Seed 0.", "Seed 0, mine."), "dataset")
    with pytest.raises(ValueError, match="the README.md of the exported folder was edited above its line"):
        merge_dataset(PUSHED, edited, "me/data", There({}))


def test_two_tasks_do_not_share_a_repository():
    other = describe(build_task(config_spec("induction", "small_64"))).text().encode()
    with pytest.raises(ValueError, match="small_64/manifest.json belongs to task 'induction', not 'fixed_offset'"):
        merge_dataset(PUSHED, EXPORTED, "me/data", There({"small_64/manifest.json": other}))


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf- a: 1\r\n", b"# \xfc\n", b"no: results\n", b""])
def test_result_files_of_others_are_left_as_they_are_byte_for_byte(content):
    from hf_posgen.hub.merge_model_card import merge_model

    there = There({".eval_results/theirs.yaml": content, "results.jsonl": b"{}", "LICENSE": b"\xfc"})
    out = merge_model({"README.md": MODEL}, "sha256:0", there)
    assert out == {"README.md": MODEL.encode(), "results.jsonl": None}
