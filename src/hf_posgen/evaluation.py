"""Measuring a model cell by cell: `save_evaluation(folder)` reads a run folder and writes its results.jsonl."""

from pathlib import Path

import numpy as np
import torch

from .files import read_rows, write_rows
from .metrics.functional import IGNORE, score
from .run_config import RunConfig, build_run, read_yaml
from .statistics import bootstrap_ratio, wilson
from .tasks import Task, build_task, examples

FIT = 0.99  # of every trained cell; for streams
FIT_STREAM = 0.95  # of the mean over trained distances


@torch.no_grad()
def predict(model, tokens: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Predictions (N, T), aligned with the labels (-100 where nothing is scored), and nats per scored token (n,).

    Only the scored places go through the head."""
    hidden = model.model(input_ids=tokens, use_cache=False).last_hidden_state
    scored = labels[:, 1:] != IGNORE
    logits = model.lm_head(hidden[:, :-1][scored]).float()
    targets = labels[:, 1:][scored]
    predictions = torch.full_like(labels, IGNORE)
    predictions[:, 1:][scored] = logits.argmax(-1)
    return predictions, torch.nn.functional.cross_entropy(logits, targets, reduction="none")


def measure(model, task: Task, split: str, cell, seed: int, count: int, batch_tokens: int) -> dict:
    """The scores of one cell: accuracies with intervals, nats per token, and the task's own reference points."""
    device, size = next(model.parameters()).device, max(1, batch_tokens // (cell.length + task.slots()))
    parts, nll = [], []
    for start in range(0, count, size):
        tokens, labels = examples(task, seed, split, cell, start, min(start + size, count))
        predictions, losses = predict(model, *(torch.from_numpy(part).to(device) for part in (tokens, labels)))
        parts.append(score(predictions.cpu().numpy(), labels, task.paste))
        nll.append(losses.double().cpu())
    scores = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    out = {"split": split, "length": cell.length, "distance": cell.distance, "count": count}
    asked = scores["answers"] > 0
    out |= _share("exact_match", scores["answers_correct"], scores["answers"], wilson_over=int(asked.sum()))
    out |= _share("token_accuracy", scores["tokens_correct"], scores["tokens_scored"])
    for part in ("first", "rest") if task.paste else ():
        out |= _share(f"{part}_accuracy", scores[f"{part}_correct"], scores[f"{part}_scored"])
    out["nll"] = float(torch.cat(nll).mean())
    return out | {"chance": task.chance(cell), "ceiling": task.ceiling(cell), "baselines": _baselines(task, cell)}


def _share(name: str, correct: np.ndarray, scored: np.ndarray, wilson_over: int | None = None) -> dict:
    """A share with its interval: Wilson's over sequences where each asks once, else a bootstrap over sequences."""
    if scored.sum() == 0:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    value = float(correct.sum() / scored.sum())
    if wilson_over is not None and scored.max() <= 1:
        low, high = wilson(value * wilson_over, wilson_over)
    else:
        low, high = bootstrap_ratio(correct, scored)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


_KNOWN: dict = {}


def _baselines(task: Task, cell) -> dict:
    if (task, cell) not in _KNOWN:
        _KNOWN[task, cell] = task.baselines(cell)
    return _KNOWN[task, cell]


def evaluate_cells(model, task: Task, split: str, seed: int, count: int, batch_tokens: int) -> list[dict]:
    """`measure` over the cells of a split. A cell that the model can't hold (past a learned table) is named and left out."""
    was_training = model.training
    model.eval()
    rows = [measure(model, task, split, cell, seed, count, batch_tokens) for cell in task.cells(split)]
    model.train(was_training)
    return rows


def validation_summary(rows: list[dict]) -> dict:
    """Means over the cells, and the worst cell."""
    mean = lambda key: float(np.mean([row[key] for row in rows]))  # noqa: E731
    out = {key: mean(key) for key in ("exact_match", "token_accuracy", "nll")}
    return out | {"worst_token_accuracy": min(row["token_accuracy"] for row in rows)}


def fits(task: Task, validation_rows: list[dict]) -> bool:
    """Whether a run learned what it was shown: streams by the mean over trained distances, other tasks at every cell."""
    summary = validation_summary(validation_rows)
    return summary["token_accuracy"] >= FIT_STREAM if task.paste else summary["worst_token_accuracy"] >= FIT


def run_facts(run: RunConfig, model, folder: Path) -> dict:
    """What every row of a run says about the run."""
    task = build_task(run.task)
    log = [line for line in read_rows(folder / "train.jsonl") if "lr" in line]
    trained = task.trained_cells()
    distances = [cell.distance for cell in trained if cell.distance is not None]
    name = lambda key: "+".join(  # noqa: E731
        dict.fromkeys(s["name"] for s in (run.model[key] if isinstance(run.model[key], list) else [run.model[key]]))
    )
    return {
        "run": folder.name,
        "arm": run.arm,
        "panel": run.panel,
        "encoding": name("position_encoding"),
        "sampler": name("position_sampler"),
        "mixer": name("mixer"),
        "logit_scale": name("logit_scale"),
        "task": task.name,
        "seed": run.seed,
        "bos": task.bos,
        "head_size": model.config.head_dim,
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens_seen": log[-1]["tokens_seen"] if log else 0,
        "lr": run.train.learning_rate,
        "train_length": max(cell.length for cell in trained),
        "train_distance": [min(distances), max(distances)],
        "step": log[-1]["step"] if log else 0,
        "selected_on": "validation" if run.train.select == "best" else "last step",
        "dtype": str(model.dtype).removeprefix("torch."),
        "revision": None,
    }


def evaluate(folder: str | Path, *, count: int | None = None, splits=None) -> list[dict]:
    """Rows for every cell of a run folder's splits (its own unless given). Raises `ValueError` for a folder without a
    run, a split the task doesn't have, and a cell past a learned table."""
    from transformers import AutoModelForCausalLM

    folder = Path(folder)
    run = build_run(read_yaml(folder / "run.yaml"))
    task = build_task(run.task)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    if torch.cuda.is_available() and not run.train.cpu:
        model = model.cuda()
    count, wanted = count or run.evaluation.count, splits or run.evaluation.splits
    mine = [split for split in wanted if task.splits().get(split)]
    if splits:
        for split in splits:
            task.cells(split)
    facts = run_facts(run, model, folder)
    rows = []
    for split in dict.fromkeys(["validation", *mine]):
        rows += evaluate_cells(model, task, split, run.seed, count, run.evaluation.batch_tokens)
    facts["fit"] = fits(task, [row for row in rows if row["split"] == "validation"])
    return [facts | row for row in rows if row["split"] in mine]


def save_evaluation(folder: str | Path, **options) -> list[dict]:
    """`evaluate`, written to the folder's results.jsonl in one piece."""
    rows = evaluate(folder, **options)
    write_rows(Path(folder) / "results.jsonl", rows)
    return rows
