"""Our metadata beside that of others: what a repository holds already, brought together with what is pushed.

Ours is known by the weights it is about: every result of ours names them, and so does the card. What was said of other
weights goes, what others added stays.
"""

import re

import yaml
from huggingface_hub import EvalResult, ModelCard, eval_result_entries_to_yaml, parse_eval_result_entries

from ..card.metadata import dump

MARK = re.compile(r"weights (sha256:[0-9a-f]{12})")  # in the notes of our `.eval_results` entries
COMPUTED = ("tags", "datasets", "metrics", "library_name", "pipeline_tag", "model_name", "eval_results", "hf_posgen")


def merge_entries(new: str | None, old: str, weights: str) -> str | None:
    """One `.eval_results` file: the old entries, without ours of other weights; those for the same (data set, task,
    revision) replaced by the new. None where no entry is left. Raises `ValueError` where one of ours can't be read."""
    if new is None and not MARK.search(old):
        return old
    key = lambda entry: (entry.dataset_id, entry.task_id, entry.dataset_revision)  # noqa: E731
    kept = [entry for entry in _entries(old) if _mark(entry.notes) in (None, weights)]
    merged = {key(entry): entry for entry in [*kept, *_entries(new or "")]}
    return dump(eval_result_entries_to_yaml(list(merged.values()))) if merged else None


def _entries(text: str) -> list:
    try:
        return parse_eval_result_entries(yaml.safe_load(text) or [])
    except yaml.YAMLError as error:
        raise ValueError(f"a file of .eval_results that is there already can't be read ({_line(error)})") from None


def _mark(notes: str | None) -> str | None:
    found = MARK.search(notes or "")
    return found[1] if found else None


def merge_card(new: str, old: str) -> str:
    """A new card with what only the old one's metadata knows: other results, other keys, further tags and data sets.

    What we once wrote of other weights goes.
    Results are the same where task, data set, configuration, split, revision and metric are; then the new one counts.
    The text is the new card's. Raises `ValueError` where the old metadata can't be read."""
    card, before = ModelCard(new), _parse(old)
    weights, wrote = _written(card).get("weights"), _written(before)
    results = {_key(one): one for one in before.data.eval_results or [] if _weights(one) in (None, weights)}
    for result in card.data.eval_results or []:
        results[_key(result)] = result
    if results:
        card.data.eval_results = list(results.values())
        card.data.model_name = card.data.model_name or before.data.model_name
    for field in ("tags", "datasets", "metrics"):
        gone = _listed(wrote.get(field)) if wrote.get("weights") != weights else []
        theirs = [one for one in _listed(before.data.get(field)) if one not in gone]
        card.data[field] = list(dict.fromkeys([*_listed(card.data.get(field)), *theirs])) or None
    for field, value in before.data.to_dict().items():
        if field not in (*COMPUTED, "model-index"):
            card.data[field] = value
    return str(card)


def _parse(card: str) -> ModelCard:
    try:
        return ModelCard(card)
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(
            f"the metadata of the README.md that is there already can't be read ({_line(error)})"
        ) from None


def _written(card: ModelCard) -> dict:
    """What a card says that we wrote into it: the weights, and the lists."""
    found = card.data.get("hf_posgen")
    return found if isinstance(found, dict) else {}


def _weights(result: EvalResult) -> str | None:
    """The weights that a result of ours is about."""
    return result.metric_args.get("weights") if isinstance(result.metric_args, dict) else None


def _key(result: EvalResult) -> tuple:
    return (*result.unique_identifier, result.metric_type, result.metric_name)


def _listed(value) -> list:
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
