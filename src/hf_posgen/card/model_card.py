"""The model card of a run folder: what it is, how it was made, what it scored and what that means."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import ModelCardData

from ..common.files import write_text
from ..common.templates import render_template
from ..run.components import distinct_specs
from ..run.folder import CARD, RunFolder
from ..run.model_files import tokenizer_files
from ..tasks.dataset.published import benchmark, named
from .example import example_of
from .facts import FILTERS, card_facts
from .metadata import METRICS, SplitSummary, eval_files, model_index, summarize

LIBRARY = "hf_posgen"


def card(run_folder: str | Path, repo_id: str | None = None) -> str:
    """Write README.md and .eval_results/*.yaml into a run folder; return the card's text.

    repo_id: where it will live, for the lines that load it. Raises `ValueError` for a folder without run.yaml."""
    texts = render(run_folder, repo_id)
    for path, text in texts.items():
        write_text(Path(run_folder) / path, text)
    return texts[CARD]


def render(
    run_folder: str | Path,
    repo_id: str | None = None,
    step: int | None = None,
    steps: Sequence[int] = (),
    linked: bool = True,
) -> dict[str, str]:
    """Return {path: text} of the card and its results files, a function of the arguments and the folder's files alone.

    step: the folder holds the weights after so many steps, not the run's last; then there are no results.
    steps: the checkpoints that are published as revisions.
    linked: whether the data set of the task is published; a card links no other, and none of a task without a name."""
    folder = RunFolder(Path(run_folder))
    run, rows = folder.config_tree(), [] if step is not None else folder.rows()
    owner = repo_id.split("/")[0] if repo_id and "/" in repo_id else None
    summaries, weights = summarize(rows), digest(folder.weights)
    facts = card_facts(folder, run, rows, summaries, repo_id or str(folder.path), step, steps)
    # None of an intermediate checkpoint: another thread may be training meanwhile, whose random numbers must not move.
    facts["example"] = example_of(folder) if step is None else None
    data = _metadata(folder, run, summaries, weights, repo_id, owner, linked)
    text = f"---\n{data.to_yaml()}\n---\n\n" + render_template("hf_posgen.card", "model_card.md.jinja", facts, FILTERS)
    return {CARD: text} | eval_files(summaries, run["task"], owner, weights)


def _metadata(
    folder: RunFolder,
    run: dict,
    summaries: list[SplitSummary],
    weights: str | None,
    repo_id: str | None,
    owner: str | None,
    linked: bool,
) -> ModelCardData:
    """Return the metadata at the head of the card. `hf_posgen` names what we write of these weights, so that it goes when
    other weights are pushed and what others added stays."""
    task = run["task"]
    lists = {
        "tags": [*_tags(run["model"]), task["name"]],
        "datasets": [benchmark(task, owner)[0]] if linked and named(task) else [],
        "metrics": list(dict.fromkeys(METRICS[metric][0] for summary in summaries for metric in summary.scores)),
        "files": [path.relative_to(folder.path).as_posix() for path in tokenizer_files(folder.path)],
    }
    written = {"weights": weights} | {key: value for key, value in lists.items() if value} if weights else None
    return ModelCardData(
        # Lists of their own: YAML writes one that is there twice as a reference.
        license="apache-2.0",
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=[LIBRARY, "positional-encoding", "length-generalization", *lists["tags"]],
        datasets=[*lists["datasets"]] or None,
        metrics=[*lists["metrics"]] or None,
        model_name=(repo_id or folder.name).split("/")[-1] if summaries else None,
        eval_results=model_index(summaries, task, owner, weights) or None,
        hf_posgen=written,
    )


def digest(weights: Path) -> str | None:
    """Return how results name the weights they are about; None where there are none."""
    if not weights.is_file():
        return None
    with weights.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()[:12]}"


def _tags(model: dict) -> list[str]:
    """Return the names of the positional encodings; "nope", the field's word, where there is none."""
    return [spec["name"] for spec in distinct_specs(model["position_encoding"]) if spec["name"] != "none"] or ["nope"]
