"""A model of any kind evaluated: a run folder, a checkpoint of ours on the Hub, or somebody else's model."""

import contextlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import torch
from huggingface_hub.errors import EntryNotFoundError

from ..common.files import require_folder, to_json, write_text
from ..common.yaml_text import read_yaml
from ..run.build import build_run, merge
from ..run.folder import LOG, MODEL_CONFIG, RUN, RunFolder
from ..run.schema import choose
from ..tasks import TASKS, build_task
from .any_model import find_file, open_model
from .cells import EvaluationTarget, evaluate_target
from .foreign import PROMPTS, foreign_target, prompted_task
from .runs import keep_rows, open_run, refuse_mixing, run_target

MEANING_OF_TRAINED = {  # by where a model saw what tables call trained
    "prompt": "Not trained on the task: 'trained' below means shown in the prompt, and 'fit' that it solves what is shown.",
    "unknown": "Perhaps not trained on the task: 'trained' below is what the task trains on, 'fit' that it solves that.",
}


def run_evaluation(
    name: str,
    *,
    out: str | Path | None = None,
    count: int | None = None,
    splits: Iterable[str] | None = None,
    lengths: Iterable[int] | None = None,
    free_running: bool = False,
    arm: str | None = None,
    panel: str | None = None,
    training_seed: int | None = None,
    **options,
) -> tuple[list[dict], str, Path | None]:
    """Evaluate any model; return (rows, a description of what was evaluated, the file of the rows or None).

    options: those of `open_target`. training_seed: which of several trainings this model is, where they make one arm; of a
    run of ours it is known. The rows go to out/results.jsonl, with out/evaluation.json beside them (which token each symbol
    is, and a whole prompt); without `out` into a run's own folder where its own task was evaluated, else nowhere. Cells
    that a folder already holds of the same evaluation stay beside the new ones. Raises `ValueError`, before anything is
    measured, for an `out` that holds the rows of another one: of other weights under the same name, say."""
    own, kept = RunFolder(name), None if out is None else RunFolder(out)
    if kept is not None:
        require_folder(kept.path)
    elsewhere = kept is not None and kept.path.resolve() != own.path.resolve()
    if elsewhere and kept.is_run:
        raise ValueError(f"{out} is a run folder, whose rows are its own: choose another folder for those of {name}")
    target = open_target(name, **options)
    if elsewhere:
        _refuse_another_evaluation(kept, target.about)
    names = {"arm": arm, "panel": panel, "seed": training_seed}
    target.facts |= {key: value for key, value in names.items() if value is not None}
    if kept is None and own.is_run and options.get("task") is None:
        kept = own
    if kept is not None:
        refuse_mixing(kept.results, target, splits, lengths)
    rows = evaluate_target(target, count=count, splits=splits, lengths=lengths, free_running=free_running)
    if kept is None:
        return rows, describe(target), None
    if out is not None:
        write_text(kept.evaluation, to_json(target.about, indent=1) + "\n")
    keep_rows(kept.results, rows)
    return rows, describe(target), kept.results


def _refuse_another_evaluation(out: RunFolder, about: dict) -> None:
    """Raise `ValueError` where a folder holds the rows of another evaluation: the two would read as one."""
    if not out.results.is_file():
        return
    before = json.loads(out.evaluation.read_text("utf-8")) if out.evaluation.is_file() else {}
    differ = [key for key, value in json.loads(json.dumps(about)).items() if before.get(key) != value]
    if differ:
        raise ValueError(
            f"{out.path} holds rows of another evaluation ({', '.join(differ)} differ): choose another folder"
        )


def describe(target: EvaluationTarget) -> str:
    """Return what was evaluated, in a line or two."""
    facts, about = target.facts, target.about
    holds = "any number of" if about["limit"] is None else f"{about['limit']:,}"
    revision = f" at {facts['revision'][:7]}" if facts["revision"] else ""
    model = f"{facts['encoding']}, {facts['parameters']:,} parameters, {facts['dtype']}"
    lines = [f"{target.name}{revision}: {model}, made for {holds} tokens"]
    if about["symbols_are"] == "words":
        lines.append("symbols: " + " ".join(repr(text) for _, text in about["symbols"].values()))
    if example := about.get("example"):
        lines += [f"a prompt ({example['cell']}):", *(f"  | {line}" for line in example["prompt"].splitlines())]
        lines.append(f"its answer: {example['answer']!r}")
        if not example["reads_back"]:
            lines.append("as a text it would be split into other tokens: the model reads the symbols' tokens")
    lines += [MEANING_OF_TRAINED[facts["seen_in"]]] if facts["seen_in"] in MEANING_OF_TRAINED else []
    return "\n".join(lines)


def open_target(
    name: str,
    task: dict | str | None = None,
    *,
    prompt: str = "symbols",
    shots: int = 4,
    data_seed: int | None = None,
    batch_tokens: int | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    past_limit: bool = False,
    device: torch.device | None = None,
) -> EvaluationTarget:
    """Return a model as an evaluation target.

    task: a spec; None for a run of ours, which has its own (a spec then refines it). prompt: "symbols", a sequence as
    it is, or "few-shot", after `shots` solved ones, in the layout that reads most like a text unless the spec names
    another. data_seed: of the sequences (0). past_limit: evaluate a rotary model on more tokens than it was made
    for. Raises `ValueError` for a model that can't be evaluated on this task, `OSError` where the Hub can't be reached."""
    choose("prompt", prompt, PROMPTS)
    hub = {"revision": revision, "trust_remote_code": trust_remote_code, "device": device}
    run_file = _run_file(name, revision)
    if run_file is not None:
        if prompt != "symbols" or data_seed is not None or past_limit:
            raise ValueError(
                f"{name} is a run of ours: it has its seed and its limit, and is evaluated on symbols as they are"
            )
        target = _our_target(name, run_file, task, hub)
    elif task is None:
        raise ValueError(f"{name} is no run of ours, so it names no task: name one with --task (posgen list tasks)")
    else:
        read = prompted_task(task if prompt != "symbols" else _tokenized_by(name, task), prompt, shots)
        target = foreign_target(open_model(name, **hub), read, prompt, data_seed or 0, past_limit)
    if batch_tokens is not None:
        target.measurement = replace(target.measurement, batch_tokens=batch_tokens)
    return target


def _tokenized_by(name: str, task: dict | str):
    """Return the spec of a task; one over text is split into tokens by the model's own tokenizer, unless it names one."""
    spec = {"name": task} if isinstance(task, str) else task
    generated = getattr(TASKS.get(spec.get("name")), "generated", True)
    return spec if generated else {"tokenizer": name} | spec


def _run_file(name: str, revision: str | None) -> Path | None:
    """Return run.yaml of a run folder or of a checkpoint that was pushed with it; None for another model."""
    if Path(name).is_dir():
        return RunFolder(name).run_file if RunFolder(name).is_run else None
    find_file(name, MODEL_CONFIG, revision)  # raises where something is wrong with the name
    try:
        return find_file(name, RUN, revision)
    except (EntryNotFoundError, OSError):
        return None


def _our_target(name: str, file: Path, task, hub: dict) -> EvaluationTarget:
    """Return a run's evaluation target. task: None, or what changes in its own. hub: the options of `open_model`."""
    tree = read_yaml(file)
    run = build_run(tree if task is None else merge(tree, {"task": task}))
    if task is not None and _symbols(run.task) != _symbols(tree["task"]):
        raise ValueError(f"{name} was trained on other symbols than task {run.task['name']!r} has")
    if Path(name).is_dir():
        target = open_run(name, hub["device"]).with_task(run.built_task)
        target.about["task"] = run.task
        return target
    with contextlib.suppress(EntryNotFoundError):  # a checkpoint's branch has none
        find_file(name, LOG, hub["revision"])  # lies beside run.yaml then
    opened = open_model(name, **hub)
    target = run_target(name, run, opened.model, file.parent, opened.digest, opened.revision)
    target.facts["run"] = name
    return target


def _symbols(spec: dict):
    task = build_task(spec)
    return tuple(task.vocabulary) if task.generated else task.tokenizer
