"""A run from nested dicts: every key checked, every default written down."""

import copy
import dataclasses
import zlib

from ..common.typed import typed
from .components import arm_name, table_rows
from .imports import import_modules
from .schema import (
    MOST_SEED,
    EvaluationConfig,
    RunConfig,
    TrainConfig,
    choose,
    identity,
    model_fields,
    model_hint,
    run_hash,
    to_tree,
    within,
)
from .tree import known, merge, override

__all__ = [
    "EvaluationConfig",
    "RunConfig",
    "TrainConfig",
    "build_model",
    "build_run",
    "identity",
    "merge",
    "model_fields",
    "override",
    "run_hash",
    "to_tree",
    "vocabulary",
]


def build_run(tree: dict) -> RunConfig:
    """Return a run from nested dicts. Raises `ValueError` that names an unknown key, a wrong value, or an evaluation
    cell that a learned table can't hold."""
    from ..tasks import SPLITS, build_task, resolve_task

    known("", tree, [f.name for f in dataclasses.fields(RunConfig)])
    sections = {
        "imports": import_modules(tree.get("imports")),
        "train": section("train", TrainConfig, tree.get("train")),
        "evaluation": section("evaluation", EvaluationConfig, tree.get("evaluation")),
        "task": resolve_task(tree.get("task", "fixed_offset")),
    }
    for split in sections["evaluation"].splits:
        choose("evaluation.splits", split, SPLITS)
    task = build_task(sections["task"])
    sections["model"] = _complete_model(tree.get("model") or {}, task)
    _refuse_short_table(sections["model"], task, sections["evaluation"])
    types = {"seed": int, "arm": str, "panel": str}
    plain = {key: typed(key, tree[key], types[key]) for key in types if key in tree}
    within(0, MOST_SEED, "seed", plain.get("seed", 0))
    run = RunConfig(**sections, **plain)
    return run if run.arm else dataclasses.replace(run, arm=arm_name(run.model))


def section(name: str, cls, tree):
    """Return a section of a run from its mapping. Raises `ValueError` for an unknown key or a wrong value."""
    hints = {each.name: each.type for each in dataclasses.fields(cls)}
    values = known(f"{name}.", tree or {}, list(hints))
    return cls(**{key: typed(f"{name}.{key}", value, hints[key]) for key, value in values.items()})


def _complete_model(model: dict, task) -> dict:
    """Return the model's fields with every effective value, components resolved. It is built once without data, so
    that what can't be is refused before a folder is made."""
    from ..model.configuration_posgen import PosGenConfig, spec_name

    fields = model_fields()
    model = copy.deepcopy(known("model.", model, list(fields)))
    for key, value in model.items():
        hint = model_hint(fields[key][0])
        model[key] = value if hint is None else typed(f"model.{key}", value, hint)
    if model.get("max_position_embeddings") is None:
        model["max_position_embeddings"] = task.max_tokens()
    try:
        config = PosGenConfig(**model, **vocabulary(task))
    except Exception as error:  # strict's own errors have several lines, and a class of their own
        raise ValueError(f"model: {' '.join(str(error).split())}") from None
    try:
        model_without_data(config)
    except ValueError:
        raise
    except Exception as error:  # torch's own, for sizes that can't be
        raise ValueError(f"model: it can't be built: {' '.join(str(error).split())}") from None
    if "positions" in task.columns and spec_name(config.position_sampler, "position_sampler") != "sequential":
        raise ValueError("model.position_sampler must be sequential: this task sets the positions of its tokens")
    return {key: getattr(config, key) for key in fields}


def _refuse_short_table(model: dict, task, evaluation: EvaluationConfig) -> None:
    """Raise `ValueError` for an evaluation that a learned table can't hold: before training, not after it."""
    size = table_rows(model)
    if size is None:
        return
    cells = [cell for split in ("train", *evaluation.splits) for cell in task.splits().get(split) or ()]
    longest = max(cells, key=lambda cell: cell.length)
    if longest.length + task.slots() > size:
        raise ValueError(
            f"the learned table has {size} rows (model.max_position_embeddings) and length {longest.length} needs "
            f"{longest.length + task.slots()}: give it more rows, evaluate shorter lengths, or set model.out_of_range to "
            "clamp or wrap"
        )


def vocabulary(task) -> dict:
    """Return the config fields that a task decides."""
    return {key: getattr(task, key) for key in ("vocab_size", "bos_token_id", "eos_token_id", "pad_token_id")}


def build_model(run: RunConfig):
    """Return the model at its start, a `PosGenForCausalLM`. Each parameter's draw depends on the seed and its name alone,
    so that arms with the same seed share every weight whose shape they share."""
    import torch

    from ..model.configuration_posgen import PosGenConfig
    from ..model.modeling_posgen import PosGenForCausalLM

    torch.manual_seed(run.seed)
    model = PosGenForCausalLM(PosGenConfig(**run.model, **vocabulary(run.built_task)))
    for name, module in model.named_modules():
        torch.manual_seed(zlib.crc32(f"{run.seed} {name}".encode()))
        model._init_weights(module)
    return model


def model_without_data(config):
    """Return the model of a `PosGenConfig` on the meta device: shapes, and no numbers."""
    import torch

    from ..model.modeling_posgen import PosGenForCausalLM

    with torch.device("meta"):
        return PosGenForCausalLM(config)
