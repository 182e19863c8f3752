"""Our metadata beside those of others: what a model repository holds already, brought together with what is pushed.

Ours are known by the weights they are about: every result of ours names them, and so does the card. What was written of
other weights goes, what others added stays.
"""

import re
from fnmatch import fnmatchcase

from huggingface_hub import EvalResult, eval_result_entries_to_yaml, parse_eval_result_entries

from ..card.metadata import dump
from ..common.yaml_text import parse_yaml
from ..run.folder import CARD, HUB_RESULTS
from .cards import Card, read_card, write_card
from .files import STALE
from .repo import Remote

MARK = re.compile(r"weights (sha256:[0-9a-f]{12})")  # in the notes of our `.eval_results` entries
COMPUTED = ("tags", "datasets", "metrics", "library_name", "pipeline_tag", "model-index", "hf_posgen")


def merge_model(texts: dict[str, str], weights: str, there: Remote) -> dict[str, bytes | None]:
    """Return the card and the result files of a repository after a push; None for a file that goes.

    texts: what `render` returns. weights: the digest of those that are pushed. Raises `ValueError` where what is there
    can't be read."""
    out = {path: text.encode() for path, text in texts.items()}
    if CARD in there.files:
        pushed_before = _listed(_written(read_card(there.read(CARD), "model")).get("files"))
        out |= {path: None for path in pushed_before if path in there.files and path != CARD}
        out[CARD] = merge_card(texts[CARD], there.read(CARD)).encode()
    for path in there.files:
        if fnmatchcase(path, f"{HUB_RESULTS}/*.yaml"):
            text = there.read(path).decode("utf-8-sig", "replace")
            merged = merge_entries(texts.get(path), text, weights)
            if merged != text:  # a file of others stays as it is, byte for byte
                out[path] = None if merged is None else merged.encode()
            elif path in texts:
                out[path] = there.read(path)
        elif any(fnmatchcase(path, pattern) for pattern in STALE):
            out[path] = None
    return out


def merge_entries(new: str | None, old: str, weights: str) -> str | None:
    """Return one `.eval_results` file: the old entries without ours of other weights, those for the same (data set, task,
    revision) replaced by the new. None where no entry is left. Raises `ValueError` where one of ours can't be read."""
    if new is None and not MARK.search(old):
        return old
    merged = {_subject(entry): entry for entry in _entries(old) if _mark(entry.notes) in (None, weights)}
    merged |= {_subject(entry): entry for entry in _entries(new or "")}
    return dump(eval_result_entries_to_yaml(list(merged.values()))) if merged else None


def _subject(entry) -> tuple:
    """Return what an entry is about."""
    return entry.dataset_id, entry.task_id, entry.dataset_revision


def _entries(text: str) -> list:
    try:
        return parse_eval_result_entries(parse_yaml(text, "it") or [])
    except ValueError as error:
        line = " ".join(str(error).split())
        raise ValueError(f"a file of .eval_results that is there already can't be read ({line})") from None


def _mark(notes: str | None) -> str | None:
    mark = MARK.search(notes or "")
    return mark[1] if mark else None


def merge_card(new: str, old: str | bytes) -> str:
    """Return a new card with what only the old one's metadata hold: other results, other keys, further tags and data sets.

    What we once wrote of other weights goes. Results are the same where task, data set, configuration, split, revision and
    metric are; then the new one counts. The text is the new card's. Raises `ValueError` where the old metadata can't be
    read."""
    card, before = read_card(new, "model"), read_card(old, "model")
    weights, wrote = _written(card).get("weights"), _written(before)
    results = {_key(one): one for one in before.data.eval_results or [] if _weights(one) in (None, weights)}
    results |= {_key(one): one for one in card.data.eval_results or []}
    if results:
        card.data.eval_results = list(results.values())
        card.data.model_name = card.data.model_name or before.data.model_name
    for key in ("tags", "datasets", "metrics"):
        gone = _listed(wrote.get(key)) if wrote.get("weights") != weights else []
        theirs = [value for value in before.values(key) if value not in gone]
        card.data[key] = list(dict.fromkeys([*card.values(key), *theirs])) or None
    kept = {key: node for key, node in before.nodes.items() if key not in COMPUTED}
    return write_card(card.data.to_dict(), card.text, kept)


def _written(card: Card) -> dict:
    """Return what a card holds that we wrote into it: the weights, and the lists."""
    mark = card.data.get("hf_posgen")
    return mark if isinstance(mark, dict) else {}


def _weights(result: EvalResult) -> str | None:
    """Return the weights that a result of ours is about."""
    return result.metric_args.get("weights") if isinstance(result.metric_args, dict) else None


def _key(result: EvalResult) -> tuple:
    return (*result.unique_identifier, result.metric_type, result.metric_name)


def _listed(value) -> list:
    return [] if value is None else [value] if isinstance(value, str) else list(value)
