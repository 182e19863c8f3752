"""What a run consists of, and the defaults: plain dataclasses.

Importing this file imports neither torch nor transformers, so that `posgen train --help` can list every key at once.
"""

import ast
import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

COMPONENTS = (
    "position_encoding",
    "position_sampler",
    "logit_scale",
    "mixer",
)  # as in PosGenConfig, whose file is heavy


def _option(default, text: str):
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class TrainConfig:
    """How a run is trained. Steps are optimizer steps; each field's help is in its metadata."""

    steps: int = _option(1000, "optimizer steps")
    batch_size: int = _option(64, "sequences per process and micro-batch")
    gradient_accumulation: int = _option(1, "micro-batches per step, weighted by their scored tokens")
    learning_rate: float = _option(1e-3, "the highest learning rate of AdamW")
    warmup_steps: int = _option(0, "steps over which the learning rate rises linearly from 0")
    schedule: str = _option("constant", "after the warm-up: constant, or cosine (falls to 0 at the last step)")
    weight_decay: float = _option(0.0, "AdamW's decoupled decay")
    clip: float = _option(1.0, "largest norm of the gradient; 0: not clipped")
    precision: str = _option("no", "no (float32) or bf16 (mixed)")
    compile: bool = _option(False, "compile the forward pass with torch.compile")
    cpu: bool = _option(False, "stay on the CPU though there is an accelerator")
    log_every: int = _option(50, "steps between lines of train.jsonl")
    validate_every: int = _option(0, "steps between validations; 0: only at the end")
    validation_count: int = _option(256, "sequences per validation cell")
    patience: int = _option(0, "stop after so many validations without a better one; 0: never")
    stop_at: float | None = _option(
        None, "stop when the worst trained cell's token accuracy reaches this in validation"
    )
    select: str = _option("last", "which weights the run keeps: last, or best (by validation)")
    save_every: int = _option(0, "steps between saved states; 0: only at the end")
    keep: int = _option(2, "how many of the newest states are kept")
    trackers: tuple[str, ...] = _option((), "accelerate's trackers by name: trackio, tensorboard, wandb, ...")

    def __post_init__(self):
        choose("train.schedule", self.schedule, ("constant", "cosine"))
        choose("train.precision", self.precision, ("no", "bf16"))
        choose("train.select", self.select, ("last", "best"))
        for name in ("steps", "batch_size", "gradient_accumulation", "log_every", "validation_count", "keep"):
            at_least(1, f"train.{name}", getattr(self, name))
        for name in (
            "learning_rate",
            "warmup_steps",
            "weight_decay",
            "clip",
            "validate_every",
            "patience",
            "save_every",
        ):
            at_least(0, f"train.{name}", getattr(self, name))


@dataclass(frozen=True)
class EvaluationConfig:
    """What is measured when a run is done."""

    splits: tuple[str, ...] = _option(
        ("validation", "test", "longer", "farther", "nearer", "between", "both"), "which splits, of those the task has"
    )
    count: int = _option(1000, "sequences per cell")
    batch_tokens: int = _option(16384, "at most so many tokens at once")

    def __post_init__(self):
        for name in ("count", "batch_tokens"):
            at_least(1, f"evaluation.{name}", getattr(self, name))


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


# What may change from one call to the next without making it another run: it shapes neither weights nor rows.
NOT_IDENTITY = {"train": ("keep", "save_every", "log_every", "trackers"), "evaluation": ("batch_tokens",)}


def choose(name: str, value, allowed) -> None:
    """Raise `ValueError` for a value that isn't among the allowed ones."""
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; allowed: {', '.join(map(str, allowed))}")


def at_least(least, name: str, value) -> None:
    """Raise `ValueError` for a value below `least`."""
    if value < least:
        raise ValueError(f"{name} is {value}; it must be at least {least}")


@cache
def model_fields() -> dict[str, tuple[str, object]]:
    """Return {field of PosGenConfig: (type as text, default)} that a run may set, read from the source so that
    nothing heavy is imported. `max_position_embeddings` defaults to what the task needs."""
    owned = {"vocab_size", "bos_token_id", "eos_token_id", "pad_token_id", "posgen_version"}
    source = (Path(__file__).parents[1] / "model" / "configuration_posgen.py").read_text()
    (config,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    fields = {
        node.target.id: (ast.unparse(node.annotation), ast.literal_eval(node.value))
        for node in config.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
        if node.target.id not in owned
    }
    return fields | {"max_position_embeddings": ("int | None", None)}


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
