"""Accuracy when only what the model believes about positions, what it may see, or which frequencies turn is changed.

Counterfactuals on a trained checkpoint, without retraining (*reconstructed*). `accuracy` gives, by length and probe:

- as_trained: nothing changed.
- shift_16, shift_1000: all positions that much larger; stretch_2: doubled; shuffle: permuted within each sequence; drop: 0
  for all; freeze: those beyond the training range held at its last one.
- only_target (fixed offset): every key hidden but the one that the task asks for and the query's own; window: keys farther
  back than the training length hidden.
- top_0.75, top_0.5, top_0.25 (rotary): that share of the frequencies, the fastest, turns and the others stand still
  (p-RoPE, Barbero et al. 2024, arXiv 2410.06205, at inference).

A probe that the model can't run (past a learned table) has no value.
"""

import contextlib
from functools import partial

import numpy as np
import torch

from ..plotting import COLOURS, side_by_side
from .context import AnalysisContext, rotary

SHARES = (0.75, 0.5, 0.25)


@torch.no_grad()
def measure(context: AnalysisContext) -> dict:
    longer = [n for n in context.lengths if 2 * context.train_length <= n <= 256]
    lengths = [context.train_length, *longer[-1:]]
    return {
        "train_length": context.train_length,
        "lengths": lengths,
        "accuracy": {str(length): _probes(context, length) for length in lengths},
    }


def _probes(context: AnalysisContext, length: int) -> dict[str, float | None]:
    tokens, labels = context.labelled(length)
    if context.offset is not None:  # the last query alone, so that masks are about one target
        labels = torch.full_like(labels, -100).index_copy(1, torch.tensor([labels.shape[1] - 1]), labels[:, -1:])
    bos, place = int(context.task.bos), torch.arange(tokens.shape[1])
    generator = torch.Generator().manual_seed(context.run.seed)
    shuffled = torch.rand(tokens.shape, generator=generator).argsort(-1)
    positions = {
        "as_trained": place,
        "shift_16": place + 16,
        "shift_1000": place + 1000,
        "stretch_2": 2 * place,
        "shuffle": shuffled,
        "drop": torch.zeros_like(place),
        "freeze": place.clamp(max=context.train_length + bos - 1),
    }
    measured = partial(accuracy, context.model, tokens, labels)
    out = {name: measured(positions=where if where.ndim == 2 else where[None]) for name, where in positions.items()}
    if context.offset is not None:
        last = bos + length - 1
        only = (place == last) | (place == last - context.offset) | (place > last)
        for name, seen in (("only_target", only), ("window", place > last - context.train_length)):
            out[name] = measured(positions=place[None], attention_mask=seen[None].expand(tokens.shape).long())
    if any(rotary(module) is not None for module in context.model.modules()):
        for share in SHARES:
            with fastest_only(context.model, share):
                out[f"top_{share:g}"] = measured(positions=place[None])
    return out


def accuracy(model, tokens: torch.Tensor, labels: torch.Tensor, **forward) -> float | None:
    """Share of the scored labels; None past a learned table."""
    try:
        logits = model(input_ids=tokens, use_cache=False, **forward).logits[:, :-1]
    except ValueError:
        return None
    scored = labels[:, 1:] != -100
    return float((logits.argmax(-1) == labels[:, 1:])[scored].double().mean())


@contextlib.contextmanager
def fastest_only(model, share: float):
    """Within, only the given share of each rotary encoding's frequencies turns: the fastest."""
    modules = [module for module in model.modules() if rotary(module) is not None]
    for module in modules:
        grid = module.frequencies()
        kept = grid.abs() >= grid.abs().sort(descending=True).values[max(0, round(share * len(grid)) - 1)]
        module.frequencies = lambda grid=grid, kept=kept: torch.where(kept, grid, 0.0)
    try:
        yield
    finally:
        for module in modules:
            del module.frequencies


def figure(result: dict):
    """Draw a bar per probe and length; a probe that can't be run has none."""
    probes = list(result["accuracy"][str(result["lengths"][0])])
    figure, (ax,) = side_by_side(1, width=1.6 + 0.55 * len(probes), height=4)
    width, places = 0.8 / len(result["lengths"]), np.arange(len(probes))
    for i, (length, colour) in enumerate(zip(result["lengths"], COLOURS, strict=False)):
        accuracy = result["accuracy"][str(length)]
        values = np.array([np.nan if accuracy[probe] is None else accuracy[probe] for probe in probes])
        ax.bar(places + i * width, values, width, color=colour, label=f"length {length}")
    ax.set_xticks(places + width * (len(result["lengths"]) - 1) / 2, probes, rotation=50, ha="right", fontsize=8)
    ax.set(ylim=(0, 1.04), ylabel="accuracy", title="counterfactual probes")
    ax.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
