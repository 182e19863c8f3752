"""Counterfactuals on a trained checkpoint, without retraining (*reconstructed*): accuracy when only what the model believes
about positions, what it may see, or which frequencies turn is changed.

Positions: `shift_s` adds s to all; `stretch_2` doubles them; `shuffle` permutes them within each sequence; `drop` says 0
for all; `freeze` holds those beyond the training range at its last one. Masks (fixed offset): `only_target` hides every key
but the asked one and the query's own; `window` hides keys farther back than the training length. Frequencies (rotary):
`top_p` keeps the p fastest turning and stops the others (p-RoPE, Barbero et al. 2024, arXiv 2410.06205, at inference).
A probe that the model can't run (past a learned table) has no value.
"""

import contextlib

import torch

from .subject import Subject, rotary

SHARES = (0.75, 0.5, 0.25)


@torch.no_grad()
def measure(subject: Subject) -> dict:
    longer = [n for n in subject.lengths if 2 * subject.train_length <= n <= 256]
    lengths = [subject.train_length, *longer[-1:]]
    return {
        "train_length": subject.train_length,
        "lengths": lengths,
        "accuracy": {str(length): _probes(subject, length) for length in lengths},
    }


def _probes(subject: Subject, length: int) -> dict[str, float | None]:
    tokens, labels = subject.labelled(length)
    if subject.offset is not None:  # the last query alone, so that masks are about one target
        labels = torch.full_like(labels, -100).index_copy(1, torch.tensor([labels.shape[1] - 1]), labels[:, -1:])
    bos, place = int(subject.task.bos), torch.arange(tokens.shape[1])
    generator = torch.Generator().manual_seed(subject.run.seed)
    shuffled = torch.rand(tokens.shape, generator=generator).argsort(-1)
    positions = {
        "as_trained": place,
        "shift_16": place + 16,
        "shift_1000": place + 1000,
        "stretch_2": 2 * place,
        "shuffle": shuffled,
        "drop": torch.zeros_like(place),
        "freeze": place.clamp(max=subject.train_length + bos - 1),
    }
    ask = lambda **forward: accuracy(subject.model, tokens, labels, **forward)  # noqa: E731
    out = {name: ask(positions=where if where.ndim == 2 else where[None]) for name, where in positions.items()}
    if subject.offset is not None:
        last = bos + length - 1
        only = (place == last) | (place == last - subject.offset) | (place > last)
        for name, seen in (("only_target", only), ("window", place > last - subject.train_length)):
            out[name] = ask(positions=place[None], attention_mask=seen[None].expand(tokens.shape).long())
    if any(rotary(module) is not None for module in subject.model.modules()):
        for share in SHARES:
            with fastest_only(subject.model, share):
                out[f"top_{share:g}"] = ask(positions=place[None])
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
    from .drawing import COLOURS, panels

    first = result["accuracy"][str(result["lengths"][0])]
    fig, axes = panels(1, width=1.2 + 0.55 * len(first), height=3.6)
    width = 0.8 / len(result["lengths"])
    for i, (length, colour) in enumerate(zip(result["lengths"], COLOURS, strict=False)):
        values = [value or 0.0 for value in result["accuracy"][str(length)].values()]
        axes[0].bar([x + i * width for x in range(len(values))], values, width, color=colour, label=f"length {length}")
    axes[0].set_xticks([x + 0.2 for x in range(len(first))], first, rotation=50, ha="right", fontsize=8)
    axes[0].set(ylim=(0, 1.04), ylabel="accuracy", title="counterfactual probes")
    axes[0].legend(fontsize=7, frameon=False)
    return fig
