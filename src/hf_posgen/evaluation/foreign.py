"""Asking any causal language model: a run folder, a checkpoint of ours on the Hub, or somebody else's model."""

import contextlib
import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import torch
from huggingface_hub.errors import EntryNotFoundError

from ..common.files import write_text
from ..run.build import EvaluationConfig, RunConfig, build_run, merge, read_yaml
from ..run.components import table_rows
from ..run.schema import choose
from ..tasks import TokenTask, build_task, resolve_task
from ..tasks.registry import OWN
from .any_model import AnyModel, Translated, find_file, open_model
from .cells import EvaluationTarget, evaluate_target
from .few_shot import FewShot
from .runs import keep_rows, open_run, run_facts, task_facts
from .symbols import task_ids

__all__ = ["open_target", "run_evaluation"]

PROMPTS = ("symbols", "few-shot")
THEIR_MAKERS = (
    "sampler",
    "mixer",
    "logit_scale",
    "out_of_range",
    "tokens_seen",
    "train_flops",
    "lr",
    "step",
    "selected_on",
)
LOGITS = 2**28  # numbers that a batch may give at once: a gigabyte in float32


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
    **options,
) -> tuple[list[dict], str, Path | None]:
    """(rows, what was evaluated in a line or two, where the rows are): `evaluate_target` of any model, `options` as for
    `open_target`.

    The rows go to out/results.jsonl, with out/evaluation.json beside them (which token each symbol is); without `out` into
    a run's own folder where its own task was asked, else nowhere. Cells that a folder already holds of the same question
    stay beside the new ones. Raises `ValueError` for an `out` that holds another question's rows."""
    own = Path(name)
    if out is not None and (Path(out) / "run.yaml").is_file() and Path(out).resolve() != own.resolve():
        raise ValueError(f"{out} is a run folder, whose rows are its own: choose another folder for those of {name}")
    target, about = open_target(name, **options)
    if out is not None and Path(out).resolve() != own.resolve():
        _refuse_another_question(Path(out), about)
    target.facts |= {key: value for key, value in (("arm", arm), ("panel", panel)) if value is not None}
    rows = evaluate_target(target, count=count, splits=splits, lengths=lengths, free_running=free_running)
    if out is not None:
        write_text(Path(out) / "evaluation.json", json.dumps(about, indent=1) + "\n")
    elif (own / "run.yaml").is_file() and options.get("task") is None:
        out = own
    if out is not None:
        keep_rows(Path(out) / "results.jsonl", rows)
    return rows, _said(target, about), None if out is None else Path(out) / "results.jsonl"


def _refuse_another_question(out: Path, about: dict) -> None:
    """Rows of two questions would read as one."""
    if not (out / "results.jsonl").is_file():
        return
    file = out / "evaluation.json"
    before = json.loads(file.read_text()) if file.is_file() else {}
    differ = [key for key, value in json.loads(json.dumps(about)).items() if before.get(key) != value]
    if differ:
        raise ValueError(f"{out} holds rows of another question ({', '.join(differ)} differ): choose another folder")


def _said(target: EvaluationTarget, about: dict) -> str:
    facts = target.facts
    holds = "any number of" if about.get("limit") is None else f"{about['limit']:,}"
    at = f" at {facts['revision'][:7]}" if facts["revision"] else ""
    model = f"{facts['encoding']}, {facts['parameters']:,} parameters, {facts['dtype']}"
    lines = [f"{target.name}{at}: {model}, made for {holds} tokens"]
    if about.get("symbols_are") == "words":
        lines.append("symbols: " + " ".join(repr(text) for _, text in about["symbols"].values()))
    return "\n".join(lines)


def open_target(
    name: str,
    task: dict | str | None = None,
    *,
    prompt: str = "symbols",
    shots: int = 4,
    seed: int | None = None,
    batch_tokens: int | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    past_limit: bool = False,
    device: torch.device | None = None,
) -> tuple[EvaluationTarget, dict]:
    """(what is asked of a model, what to write down about it).

    task: a spec; None for a run of ours, which has its own (a spec then refines it). prompt: "symbols", a sequence as
    it is, or "few-shot", after `shots` solved ones. past_limit: ask a rotary model for more tokens than it was made for.
    Raises `ValueError` for a model that can't be asked this task, `OSError` where the Hub can't be reached."""
    choose("prompt", prompt, PROMPTS)
    run_file = _run_file(name, revision)
    if run_file is not None:
        if prompt != "symbols" or seed is not None or past_limit:
            raise ValueError(f"{name} is a run of ours: it has its seed and its limit, and is asked by symbols")
        return _ours(name, run_file, task, batch_tokens, revision, trust_remote_code, device)
    if task is None:
        raise ValueError(f"{name} is no run of ours, so it says no task: name one with --task (posgen list tasks)")
    task = build_task(task if prompt != "symbols" else _read_by(name, task))
    if not isinstance(task, TokenTask):
        raise ValueError(f"task {task.name!r} is real-valued: no language model reads it")
    task = task if prompt == "symbols" else FewShot(task=task, shots=shots)
    found = open_model(name, revision=revision, trust_remote_code=trust_remote_code, device=device)
    return _theirs(found, task, prompt, seed or 0, batch_tokens, past_limit)


def _read_by(name: str, task: dict | str):
    """The spec of a task over text: split into tokens by the model's own tokenizer, unless it says by which."""
    spec = {"name": task} if isinstance(task, str) else task
    return {"tokenizer": name} | spec if spec.get("name") in OWN else spec


def _run_file(name: str, revision: str | None) -> Path | None:
    """run.yaml of a run folder or of a checkpoint that was pushed with it; None for another model."""
    if Path(name).is_dir():
        return Path(name) / "run.yaml" if (Path(name) / "run.yaml").is_file() else None
    find_file(name, "config.json", revision)  # says what is wrong with the name
    try:
        return find_file(name, "run.yaml", revision)
    except (EntryNotFoundError, OSError):
        return None


def _ours(
    name: str, file: Path, task, batch_tokens, revision, trust_remote_code, device
) -> tuple[EvaluationTarget, dict]:
    tree = read_yaml(file)
    run = build_run(tree if task is None else merge(tree, {"task": task}))
    if task is not None and _symbols(run.task) != _symbols(tree["task"]):
        raise ValueError(f"{name} was trained on other symbols than task {run.task['name']!r} has")
    if Path(name).is_dir():
        target = open_run(name, device)
        target.task = build_task(run.task)
        target.facts |= task_facts(target.task)
    else:
        target = _pushed(name, run, file, revision, trust_remote_code, device)
    if batch_tokens is not None:
        target.options = replace(target.options, batch_tokens=batch_tokens)
    about = {
        "model": name,
        "revision": target.facts["revision"],
        "task": run.task,
        "prompt": "symbols",
        "seed": run.seed,
    }
    return target, about | {"limit": target.limit, "symbols_are": "own"}


def _symbols(spec: dict):
    task = build_task(spec)
    return task.tokenizer if task.natural else tuple(task.vocabulary)


def _pushed(name: str, run: RunConfig, file: Path, revision, trust_remote_code, device) -> EvaluationTarget:
    with contextlib.suppress(EntryNotFoundError):  # a checkpoint's branch has none
        find_file(name, "train.jsonl", revision)  # lies beside run.yaml then
    found = open_model(name, revision=revision, trust_remote_code=trust_remote_code, device=device)
    task = build_task(run.task)
    facts = run_facts(run, task, found.model, file.parent) | {"run": name, "revision": found.revision}
    return EvaluationTarget(
        name, found.model, task, facts, run.seed, run.evaluation, table_rows(found.config.to_dict())
    )


def _theirs(
    found: AnyModel, task, prompt: str, seed: int, batch_tokens, past_limit: bool
) -> tuple[EvaluationTarget, dict]:
    size = found.model.get_input_embeddings().num_embeddings
    if "positions" in task.columns and found.config.model_type != "posgen":
        raise ValueError(f"task {task.name!r} says itself where its tokens stand, and {found.name} can't be told")
    if past_limit and found.limit is not None and not found.goes_past:
        raise ValueError(f"{found.name} can't be asked past its {found.limit:,} tokens: only rotary models can")
    if task.natural:
        ids, prefix, how = list(range(task.vocab_size)), (), "own"
    else:
        ids, prefix, how = task_ids(found.name, found.tokenizer, size, task)
    pairs = () if task.natural else zip(task.vocabulary, ids, strict=True)
    symbols = {one: [i, found.tokenizer.decode([i]) if found.tokenizer else one] for one, i in pairs}
    shots = task.shots if isinstance(task, FewShot) else 0
    about = {"model": found.name, "revision": found.revision, "task": resolve_task(task.task if shots else task)}
    about |= {"prompt": prompt, "shots": shots, "seed": seed, "limit": found.limit, "prefix": list(prefix)}
    about |= {"symbols_are": how, "symbols": symbols}
    facts = _facts(found, task, seed, shots) | {"bos": task.bos or bool(prefix), "prompt": prompt}
    facts["symbols"] = f"{how} {hashlib.sha256(json.dumps(symbols).encode()).hexdigest()[:8]}"
    at_once = min(EvaluationConfig.batch_tokens, max(1, LOGITS // size)) if batch_tokens is None else batch_tokens
    options = EvaluationConfig(batch_tokens=at_once)
    further = ", or ask for more than it was made for with --past-limit" if found.goes_past else ""
    model = Translated(found.model, ids, prefix).to(found.model.device)
    limit = None if past_limit else found.limit
    return EvaluationTarget(found.name, model, task, facts, seed, options, limit, len(prefix), further), about


def _facts(found: AnyModel, task, seed: int, shots: int) -> dict:
    """What every row says about somebody else's model: None where only its maker knows."""
    label = Path(found.name).resolve().name if Path(found.name).is_dir() else found.name
    return (
        dict.fromkeys(THEIR_MAKERS)
        | task_facts(task)
        | {
            "run": label,
            "arm": label,
            "panel": f"few-shot, {shots} examples" if shots else "",
            "encoding": found.encoding,
            "seed": seed,
            "head_size": found.head_size,
            "parameters": found.model.num_parameters(),
            "dtype": str(found.model.dtype).removeprefix("torch."),
            "revision": found.revision,
        }
    )
