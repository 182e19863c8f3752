"""The model card of a run folder: what it is, how it was made, what it scored and what that means. Reads no model."""

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import yaml
from huggingface_hub import ModelCard, ModelCardData

from ..common.files import read_rows, write_text
from ..common.yaml_text import read_yaml
from ..report.headline_tables import run_numbers
from ..results.definitions import DEFINITIONS
from ..results.frame import frame
from ..results.panel import Panel
from ..run.components import describe_component, distinct_specs
from ..run.folder import state_name
from ..run.model_files import tokenizer_files
from ..tasks import TASKS
from ..tasks.dataset.published import benchmark, named
from .metadata import METRICS, SplitSummary, eval_files, metric_of, model_index, summarize

MOST_CELLS = 40  # beyond that a card points to results.jsonl
LIBRARY = "hf_posgen"


def card(run_folder: str | Path, repo_id: str | None = None) -> str:
    """Write README.md and .eval_results/*.yaml into a run folder; returns the card's text.

    repo_id: where it will live, for the lines that load it. Raises `ValueError` for a folder without run.yaml."""
    texts = render(run_folder, repo_id)
    for path, text in texts.items():
        write_text(Path(run_folder) / path, text)
    return texts["README.md"]


def render(
    run_folder: str | Path,
    repo_id: str | None = None,
    step: int | None = None,
    steps: Sequence[int] = (),
    linked: bool = True,
) -> dict[str, str]:
    """{path: text} of the card and its results files, a function of the arguments and the folder's files alone.

    step: the folder holds the weights after so many steps, not the run's last; then there are no results.
    steps: the checkpoints that are published as revisions.
    linked: whether the data set of the task is published; a card links no other, and none of a task without a name."""
    folder = Path(run_folder)
    run = read_yaml(folder / "run.yaml")
    rows = [] if step is not None else read_rows(folder / "results.jsonl")
    owner = repo_id.split("/")[0] if repo_id and "/" in repo_id else None
    summaries, task = summarize(rows), run["task"]
    weights = digest(folder / "model.safetensors")
    mine = {
        "tags": [*_names(run["model"]), task["name"]],
        "datasets": [benchmark(task, owner)[0]] if linked and named(task) else [],
        "metrics": list(dict.fromkeys(METRICS[metric][0] for one in summaries for metric in one.scores)),
        "files": [path.relative_to(folder).as_posix() for path in tokenizer_files(folder)],
    }
    data = ModelCardData(
        # Lists of their own: YAML writes one that stands twice as a reference.
        license="apache-2.0",
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=[LIBRARY, "positional-encoding", "length-generalization", *mine["tags"]],
        datasets=[*mine["datasets"]] or None,
        metrics=[*mine["metrics"]] or None,
        model_name=(repo_id or folder.name).split("/")[-1] if summaries else None,
        eval_results=model_index(summaries, task, owner, weights) or None,
        hf_posgen={"weights": weights} | {key: value for key, value in mine.items() if value} if weights else None,
    )
    template = files("hf_posgen.card").joinpath("model_card.md.jinja").read_text()
    facts = _facts(folder, run, rows, summaries, repo_id or str(folder), step)
    facts["revisions"] = [state_name(one) for one in steps]
    text = str(ModelCard.from_template(data, template_str=template, **facts)).rstrip() + "\n"
    return {"README.md": text} | eval_files(summaries, task, owner, weights)


def digest(weights: Path) -> str | None:
    """What results say which weights they are about; None where there are none."""
    if not weights.is_file():
        return None
    with weights.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()[:12]}"


def _facts(folder: Path, run: dict, rows: list[dict], summaries: list[SplitSummary], where: str, step) -> dict:
    """What the template may say."""
    cells = [row for row in rows if row["split"] != "validation"]
    return {
        "title": f"{run['arm']} on {run['task']['name']}, seed {run['seed']}"
        + ("" if step is None else f", step {step}"),
        "where": where,
        "run": run,
        "step": step,
        "branch": "" if step is None else f', revision="{state_name(step)}"',
        "components": [
            component(field, spec)
            for field in ("position_encoding", "position_sampler", "logit_scale", "mixer")
            for spec in distinct_specs(run["model"][field])
        ],
        "paper": getattr(TASKS.get(run["task"]["name"]), "paper", None),
        "row": rows[0] if rows else None,
        "fit": bool(rows[0]["fit"]) if rows else None,
        "summaries": summaries,
        "metrics": [(key, name) for key, (_, name) in METRICS.items() if any(key in one.scores for one in summaries)],
        "numbers": run_numbers(Panel(frame(rows))) if rows else {},
        "definitions": DEFINITIONS,
        "natural": metric_of(run["task"]) == "perplexity",
        "cells": cells if len(cells) <= MOST_CELLS else [],
        "figures": sorted(f"figures/{path.name}" for path in (folder / "figures").glob("*.png")),
        "analysis": (folder / "analysis.json").is_file(),
        "span": lambda ends: (
            "mixed" if ends is None else str(ends[0]) if ends[0] == ends[1] else f"{ends[0]}–{ends[1]}"
        ),
        "yaml": lambda tree: yaml.safe_dump(tree, sort_keys=False, default_flow_style=None, width=100).rstrip(),
    }


def component(field: str, spec: dict) -> dict:
    """What a component is, fit for a cell of a Markdown table."""
    facts = describe_component(field, spec)
    arguments = {key: str(value).replace("|", "\\|") for key, value in facts["arguments"].items()}
    return facts | {"arguments": arguments, "what": facts["what"].replace("|", "\\|")}


def _names(model: dict) -> list[str]:
    return [spec["name"] for spec in distinct_specs(model["position_encoding"]) if spec["name"] != "none"] or ["nope"]
