"""What a run is: one YAML file with five parts, every key checked, every default written down."""

import copy
import dataclasses
import difflib
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from .tasks import build_task, resolve_task


@dataclass(frozen=True)
class TrainConfig:
    """Training. Steps are optimizer steps; `batch_size` is sequences per process and micro-batch.

    learning_rate rises linearly over `warmup_steps`, then stays ("constant") or falls to zero ("cosine"). Validation
    (every `validate_every` steps, 0: only at the end) drives early stopping (`patience` validations without a better one, 0: never;
    `stop_at`: the worst cell's token accuracy that is enough) and `select` ("last" or "best"). States are saved every `save_every`
    steps (0: only at the end), the newest `keep` are kept. precision: "no" or "bf16".
    """

    steps: int = 1000
    batch_size: int = 64
    gradient_accumulation: int = 1
    learning_rate: float = 1e-3
    warmup_steps: int = 0
    schedule: str = "constant"
    weight_decay: float = 0.0
    clip: float = 1.0
    precision: str = "no"
    compile: bool = False
    cpu: bool = False
    log_every: int = 50
    validate_every: int = 0
    validation_count: int = 256
    patience: int = 0
    stop_at: float | None = None
    select: str = "last"
    save_every: int = 0
    keep: int = 2
    trackers: tuple[str, ...] = ()

    def __post_init__(self):
        _choose("train.schedule", self.schedule, ("constant", "cosine"))
        _choose("train.precision", self.precision, ("no", "bf16"))
        _choose("train.select", self.select, ("last", "best"))
        for name in ("steps", "batch_size", "gradient_accumulation", "log_every", "validation_count", "keep"):
            if getattr(self, name) < 1:
                raise ValueError(f"train.{name} is {getattr(self, name)}; it must be at least 1")


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation: `count` sequences for each cell of `splits` (those the task has), at most `batch_tokens` tokens at once."""

    splits: tuple[str, ...] = ("validation", "test", "longer", "farther", "nearer", "both")
    count: int = 1000
    batch_tokens: int = 65536


@dataclass(frozen=True)
class RunConfig:
    """A run. `model` holds fields of PosGenConfig (vocabulary and control tokens come from the task), `task` a task's spec,
    `arm` names the whole difference from its siblings in a sweep, `panel` the study it belongs to."""

    model: dict = field(default_factory=dict)
    task: dict = field(default_factory=lambda: {"name": "fixed_offset"})
    train: TrainConfig = field(default_factory=TrainConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    seed: int = 0
    arm: str = ""
    panel: str = ""


def _choose(name: str, value, allowed) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; allowed: {', '.join(map(str, allowed))}")


def model_fields() -> dict:
    """{field of PosGenConfig: default} that a run may set."""
    from .model.configuration_posgen import PosGenConfig

    owned = {"vocab_size", "bos_token_id", "eos_token_id", "pad_token_id", "posgen_version"}
    annotations = PosGenConfig.__annotations__
    return {
        f.name: f.default for f in dataclasses.fields(PosGenConfig) if f.name in annotations and f.name not in owned
    }


def build_run(tree: dict) -> RunConfig:
    """A run from nested dicts. Raises `ValueError` that names an unknown key and the nearest, or a value of a wrong type."""
    tree = _known("", tree, [f.name for f in dataclasses.fields(RunConfig)])
    parts = {
        "train": _section("train", TrainConfig, tree.get("train")),
        "evaluation": _section("evaluation", EvaluationConfig, tree.get("evaluation")),
        "task": resolve_task(tree.get("task", "fixed_offset")),
        "model": _complete_model(tree.get("model") or {}, tree.get("task", "fixed_offset")),
    }
    plain = {key: tree[key] for key in ("seed", "arm", "panel") if key in tree}
    if not isinstance(plain.get("seed", 0), int):
        raise ValueError(f"seed is {plain['seed']!r}; it must be a whole number")
    run = RunConfig(**parts, **plain)
    return run if run.arm else dataclasses.replace(run, arm=arm_name(run.model))


def _known(path: str, tree, allowed) -> dict:
    if not isinstance(tree, dict):
        raise ValueError(f"{path.rstrip('.') or 'a run'} is {tree!r}; it must be a mapping")
    for key in tree:
        if key not in allowed:
            near = difflib.get_close_matches(str(key), allowed, n=1)
            hint = f" (did you mean {path}{near[0]!r}?)" if near else ""
            raise ValueError(f"unknown key {path}{key!r}{hint}; allowed: {', '.join(allowed)}")
    return tree


def _section(name: str, cls, tree):
    fields = {f.name: f for f in dataclasses.fields(cls)}
    given = _known(f"{name}.", tree or {}, list(fields))
    return cls(**{key: _typed(f"{name}.{key}", value, fields[key].default) for key, value in given.items()})


def _typed(name: str, value, default):
    """A value of the default's type; whole numbers pass for floats, lists for tuples, "1e-3" for a float."""
    wanted = float if default is None else type(default)
    if value is None and default is None:
        return None
    if wanted is float and isinstance(value, str):  # YAML reads 1e-3 as text
        try:
            return float(value)
        except ValueError:
            pass
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if wanted is tuple and isinstance(value, list | tuple):
        return tuple(value)
    if type(value) is not wanted:
        raise ValueError(f"{name} is {value!r}; it must be of type {wanted.__name__}")
    return value


def _complete_model(given: dict, task_spec) -> dict:
    """The model's fields with every effective value, components resolved."""
    from .model.configuration_posgen import PosGenConfig
    from .model.validation import complete_config

    fields = model_fields()
    given = copy.deepcopy(_known("model.", given, list(fields)))
    for key, value in given.items():
        if isinstance(value, str) and isinstance(fields[key], float):
            given[key] = _typed(f"model.{key}", value, fields[key])
    task = build_task(task_spec)
    given.setdefault("max_position_embeddings", task.max_tokens())
    try:
        config = PosGenConfig(**given, **vocabulary(task))
    except Exception as error:  # strict's own errors are multi-line
        raise ValueError(f"model: {' '.join(str(error).split())}") from None
    complete_config(config)
    return {key: getattr(config, key) for key in fields}


def vocabulary(task) -> dict:
    """The config fields that a task decides."""
    return {"vocab_size": task.vocab_size, "bos_token_id": task.bos_token_id, "pad_token_id": task.pad_token_id}


def arm_name(model: dict) -> str:
    """A short name from what is special about a model."""
    spec = model["position_encoding"]
    names = [one["name"] for one in spec] if isinstance(spec, list) else [spec["name"]]
    parts = ["+".join(dict.fromkeys(names))]
    for key, plain in (("position_sampler", "sequential"), ("logit_scale", "none"), ("mixer", "softmax")):
        spec = model[key]
        for one in dict.fromkeys(s["name"] for s in (spec if isinstance(spec, list) else [spec])):
            if one != plain:
                parts.append(one)
    return "-".join(parts)


def to_tree(run: RunConfig) -> dict:
    """Plain nested dicts, ready for YAML or JSON."""
    return json.loads(json.dumps(dataclasses.asdict(run)))


def run_hash(run: RunConfig) -> str:
    """Eight hex digits of the content of everything that shapes the run's weights and rows."""
    return hashlib.sha256(json.dumps(to_tree(run), sort_keys=True).encode()).hexdigest()[:8]


def read_yaml(path: str | Path) -> dict:
    """A YAML mapping from a file; `ValueError` where it isn't one."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"no such file: {path}")
    try:
        tree = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is no valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(tree, dict):
        raise ValueError(f"{path} holds no mapping of keys to values")
    return tree


def merge(tree: dict, changes: dict) -> dict:
    """`tree` with `changes` laid over it, key by key; what is a component's name in one may be its dict in the other."""
    out = copy.deepcopy(tree)
    for key, value in changes.items():
        old = out.get(key)
        if isinstance(value, dict) and isinstance(old, str):
            old = {"name": old}
        if isinstance(value, dict) and isinstance(old, dict) and value.get("name", old.get("name")) == old.get("name"):
            out[key] = merge(old, value)
        else:
            out[key] = copy.deepcopy(value)
    return out


def override(tree: dict, dotted: str, text: str) -> dict:
    """`tree` with one dotted key set to a value written as YAML; a spec given as a name is refined, not replaced."""
    value = yaml.safe_load(text)
    for key in reversed(dotted.split(".")):
        value = {key: value}
    return merge(tree, value)
