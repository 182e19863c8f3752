"""What is analysed: a trained checkpoint, the same model untrained, and sequences of its task.

Shape suffixes in this folder: those of the model, and N sequences, c some queries of L, V data symbols, F frequencies.
"""

import json
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import nn

from ..model.mixer_softmax import SoftmaxAttention
from ..run.build import RunConfig, build_model
from ..run.folder import RunFolder
from ..tasks import Cell, Task, examples
from .attention_view import AttentionView, attention_views

LONGEST = 1024  # tokens: what the analyses look at unless the run evaluates less


class NotApplicable(ValueError):
    """An analysis has no meaning for this checkpoint; the message says why."""


class Missing:
    """What a context holds in place of a run or a task that it lacks: an analysis that reads anything of it isn't
    applicable."""

    def __init__(self, reason: str):
        self._reason = reason

    def __getattr__(self, name: str):
        raise NotApplicable(self._reason)


NO_RUN = Missing("this folder holds a model without a run (run.yaml), so no task says which sequences to measure it on")


@dataclass
class AnalysisContext:
    """What is measured. untrained: the model at its start, or None; run, task: `NO_RUN` for a model alone; offset: the
    distance that the task asks for, or None."""

    model: nn.Module
    untrained: nn.Module | None
    run: RunConfig | Missing
    task: Task | Missing
    count: int = 256

    @classmethod
    def open(cls, folder: RunFolder, count: int = 256) -> "AnalysisContext":
        """Return the context of a folder's checkpoint. Raises `ValueError` for an unfinished run, for a model of another
        kind, and for weights that are no finite numbers."""
        if not folder.model_config.is_file():
            folder.require_finished()
        run = folder.run() if folder.is_run else NO_RUN  # first: its imports may register the model's encoding
        model = _open_model(folder)
        if run is NO_RUN:
            return cls(model, None, NO_RUN, NO_RUN, count)
        return cls(model, build_model(run).eval(), run, run.built_task, count)

    @property
    def offset(self) -> int | None:
        return getattr(self.task, "offset", None)

    @property
    def train_length(self) -> int:
        """The longest trained length, in tokens."""
        return max(cell.length for cell in self.task.trained_cells())

    @cached_property
    def lengths(self) -> list[int]:
        """The evaluated lengths up to `LONGEST`: trained ones and longer ones."""
        splits = self.task.splits()
        cells = [cell for name in ("test", "longer", "both") for cell in splits.get(name, ())]
        return sorted({cell.length for cell in cells if cell.length <= LONGEST})

    @property
    def longest(self) -> int:
        return max(self.lengths)

    def require_offset(self) -> int:
        if self.offset is None:
            raise NotApplicable(f"task {self.task.name!r} asks for no fixed offset")
        return self.offset

    def require_symbols(self) -> int:
        """How many symbols there are to pair."""
        if not self.task.generated:
            raise NotApplicable("kernels of all pairs of symbols are for tasks of a few symbols, not for text")
        return self.task.data_symbols

    def require_softmax(self) -> None:
        if not any(isinstance(layer.self_attn, SoftmaxAttention) for layer in self.model.model.layers):
            raise NotApplicable("no layer of this model has softmax attention")

    def require_one_layer(self):
        """The layer of a model that is one softmax layer with one head."""
        self.require_softmax()
        config = self.model.config
        if config.num_hidden_layers > 1 or config.num_attention_heads > 1:
            raise NotApplicable("defined for one layer with one head")
        return self.model.model.layers[0]

    def labelled(self, length: int, count: int | None = None, start: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """(N, T) tokens and labels, as the task draws them for its own split "analysis"."""
        if len(self.task.columns) > 2:
            raise NotApplicable("this task says itself where its tokens stand; here they are counted from 0")
        distances = [c.distance for c in self.task.trained_cells() if c.length == self.train_length]
        cell = Cell(length, self.offset if self.offset is not None else sorted(distances, key=str)[0])
        pair = examples(self.task, self.run.seed, "analysis", cell, start, start + (count or self.count))
        return tuple(torch.from_numpy(part) for part in pair)

    def sequences(
        self, length: int, count: int | None = None, start: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(N, T) tokens of a length whose last place is a query, and, for a fixed offset, its answers (N,)."""
        tokens, labels = self.labelled(length, count, start)
        return (tokens, None) if self.offset is None else (tokens[:, :-1], labels[:, -1])

    def batches(self, length: int, count: int, tokens: int = 2**16):
        """`sequences` in parts of at most so many tokens."""
        size = max(1, tokens // length)
        return (self.sequences(length, min(size, count - start), start) for start in range(0, count, size))

    def target_key(self, length: int) -> int:
        """The index of the key that the last query asks for, the anchor token counted."""
        return int(self.task.bos) + length - 1 - self.require_offset()

    def views(self, length: int, count: int | None = None, model=None, **forward) -> list[AttentionView]:
        """Every softmax layer's attention over sequences of a length."""
        return attention_views(model or self.model, self.sequences(length, count)[0], **forward)

    def view_of(self, tokens: torch.Tensor) -> AttentionView:
        """The one layer's attention over given tokens."""
        return attention_views(self.model, tokens)[0]


def _open_model(folder: RunFolder) -> nn.Module:
    """Return a folder's model in float32. Raises `ValueError` where it isn't a `posgen` model of finite numbers."""
    from transformers import AutoModelForCausalLM

    kind = json.loads(folder.model_config.read_text(encoding="utf-8")).get("model_type")
    if kind != "posgen":
        raise ValueError(
            f"{folder.path} holds a model of type {kind!r}, and analyses read the attention of posgen models: analyse the "
            f"run that it comes from, or `posgen convert {folder.path} OUT` first"
        )
    model = AutoModelForCausalLM.from_pretrained(folder.path).float().eval()
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            raise ValueError(f"{folder.path}: weight {name} holds NaN or infinity, of which nothing can be measured")
    return model


def rotary(module):
    """The encoding of a layer where its logits are Σ_f A_f cos(θ_f δ - φ_f) with constant frequencies; None elsewhere."""
    from ..model.encodings_rotary import RoPE, XPos

    plain = isinstance(module, RoPE) and not isinstance(module, XPos) and not module.depends_on_length
    return module if plain else None


def per_head(layer: int, values: dict[str, torch.Tensor]) -> list[dict]:
    """One plain dict per head from tensors whose first axis is the head."""
    heads = len(next(iter(values.values())))
    return [{"layer": layer, "head": h} | {key: plain(value[h]) for key, value in values.items()} for h in range(heads)]


def head_name(entry: dict) -> str:
    """Return how a figure names the head that an entry is about."""
    return f"layer {entry['layer']}, head {entry['head']}"


def plain(value):
    """Return numbers, lists and dicts for JSON; what is no finite number becomes None."""
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
