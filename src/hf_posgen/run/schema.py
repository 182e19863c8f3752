"""What a run consists of, and the defaults: plain dataclasses.

Importing this file imports neither torch nor transformers, so that `posgen train --help` can list every key at once.
"""

import ast
import dataclasses
import functools
import hashlib
import json
import operator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

COMPONENTS = (
    "position_encoding",
    "position_sampler",
    "logit_scale",
    "mixer",
)  # as in PosGenConfig, whose file is heavy


def _option(default, text: str, least=None, most=None):
    return field(default=default, metadata={"help": text, "least": least, "most": most})


@dataclass(frozen=True)
class Section:
    """A part of a run whose fields know their bounds."""

    name = ""

    def __post_init__(self):
        for each in dataclasses.fields(self):
            value, least, most = getattr(self, each.name), each.metadata["least"], each.metadata["most"]
            if value is not None and least is not None:
                within(least, most, f"{self.name}.{each.name}", value)


@dataclass(frozen=True)
class TrainConfig(Section):
    """How a run is trained. Steps are optimizer steps; each field's help is in its metadata."""

    steps: int = _option(1000, "optimizer steps", least=1)
    batch_size: int = _option(64, "sequences per process and micro-batch", least=1)
    gradient_accumulation: int = _option(1, "micro-batches per step, weighted by their scored tokens", least=1)
    learning_rate: float = _option(1e-3, "the highest learning rate of AdamW", least=0)
    warmup_steps: int = _option(0, "steps over which the learning rate rises linearly from 0", least=0)
    schedule: Literal["constant", "cosine"] = _option(
        "constant", "after the warm-up: constant, or cosine (falls to 0 at the last step)"
    )
    weight_decay: float = _option(0.0, "AdamW's decoupled decay", least=0)
    clip: float = _option(1.0, "largest norm of the gradient; 0: not clipped", least=0)
    precision: Literal["no", "bf16"] = _option("no", "no (float32) or bf16 (mixed)")
    compile: bool = _option(False, "compile the forward pass with torch.compile")
    cpu: bool = _option(False, "stay on the CPU though there is an accelerator")
    log_every: int = _option(50, "steps between lines of train.jsonl", least=1)
    validate_every: int = _option(0, "steps between validations; 0: only at the end", least=0)
    validation_count: int = _option(256, "sequences per validation cell", least=1)
    patience: int = _option(0, "stop after so many validations without a better one; 0: never", least=0)
    stop_at: float | None = _option(
        None, "stop when the worst trained cell's token accuracy reaches this in validation", least=0, most=1
    )
    select: Literal["last", "best"] = _option("last", "which weights the run keeps: last, or best (by validation)")
    save_every: int = _option(0, "steps between saved states; 0: only at the end", least=0)
    keep: int = _option(2, "how many of the newest states are kept", least=1)
    trackers: tuple[str, ...] = _option((), "accelerate's trackers by name: trackio, tensorboard, wandb, ...")

    name = "train"


@dataclass(frozen=True)
class EvaluationConfig(Section):
    """What is measured when a run is done."""

    splits: tuple[str, ...] = _option(
        ("validation", "test", "longer", "farther", "nearer", "between", "both"), "which splits, of those the task has"
    )
    count: int = _option(1000, "sequences per cell", least=1)
    batch_tokens: int = _option(16384, "at most so many tokens at once", least=1)

    name = "evaluation"

    def __post_init__(self):
        super().__post_init__()
        if len(set(self.splits)) < len(self.splits):
            raise ValueError(f"evaluation.splits names a split twice: {', '.join(self.splits)}")


@dataclass(frozen=True)
class RunConfig:
    """A run. `model` holds fields of PosGenConfig (vocabulary and control tokens come from the task), `task` a task's spec,
    `arm` names the whole difference from its siblings in a sweep, `panel` the study it belongs to. `imports` are modules
    outside the package that register encodings, {name: digest of the file}."""

    model: dict = field(default_factory=dict)
    task: dict = field(default_factory=lambda: {"name": "fixed_offset"})
    train: TrainConfig = field(default_factory=TrainConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    seed: int = 0
    arm: str = ""
    panel: str = ""
    imports: dict = field(default_factory=dict)

    @cached_property
    def built_task(self):
        """The `Task` that the spec `task` describes, built once."""
        from ..tasks import build_task

        return build_task(self.task)

    def __getstate__(self) -> dict:
        """The fields alone: a built task may hold a corpus, and a run is sent to other processes."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


MOST_SEED = 2**31 - 1  # numpy's legacy generator takes 32 bits, and each process adds to the seed
# What may change from one call to the next without making it another run: it shapes neither weights nor rows.
NOT_IDENTITY = {"train": ("keep", "save_every", "log_every", "trackers"), "evaluation": ("batch_tokens",)}


def choose(name: str, value, allowed) -> None:
    """Raise `ValueError` for a value that isn't among the allowed ones."""
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; allowed: {', '.join(map(str, allowed))}")


def within(least, most, name: str, value) -> None:
    """Raise `ValueError` for a value below `least` or above `most` (None: no bound)."""
    if value < least or (most is not None and value > most):
        wanted = f"at least {least}" if most is None else f"at least {least} and at most {most}"
        raise ValueError(f"{name} is {value}; it must be {wanted}")


@cache
def model_fields() -> dict[str, tuple[str, object]]:
    """Return {field of PosGenConfig: (type as text, default)} that a run may set, read from the source so that
    nothing heavy is imported. `max_position_embeddings` defaults to what the task needs."""
    owned = {"vocab_size", "bos_token_id", "eos_token_id", "pad_token_id", "posgen_version"}
    source = (Path(__file__).parents[1] / "model" / "configuration_posgen.py").read_text(encoding="utf-8")
    (config,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    fields = {
        node.target.id: (ast.unparse(node.annotation), ast.literal_eval(node.value))
        for node in config.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
        if node.target.id not in owned
    }
    return fields | {"max_position_embeddings": ("int | None", None)}


def model_hint(annotation: str):
    """Return the type that `model_fields` gives as text; None for a component's spec, which has rules of its own."""
    plain = {"int": int, "float": float, "str": str, "bool": bool, "None": type(None)}
    names = annotation.split(" | ")
    return None if "dict" in names else functools.reduce(operator.or_, (plain[name] for name in names))


def to_tree(run: RunConfig) -> dict:
    """Return plain nested dicts, ready for YAML or JSON."""
    return json.loads(json.dumps(dataclasses.asdict(run)))


def identity(tree: dict) -> dict:
    """Return what makes a run this run: its tree without what shapes neither weights nor rows."""
    without = {part: {k: v for k, v in tree[part].items() if k not in keys} for part, keys in NOT_IDENTITY.items()}
    return {key: value for key, value in (tree | without).items() if key != "imports" or value}


def run_hash(run: RunConfig) -> str:
    """Return eight hex digits of the content of everything that shapes the run's weights and rows."""
    return hashlib.sha256(json.dumps(identity(to_tree(run)), sort_keys=True).encode()).hexdigest()[:8]
