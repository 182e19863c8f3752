"""Names that aren't there. Imports nothing heavy."""

import difflib
from collections.abc import Iterable

# What other tools call our keys: {their name: ours}.
ALIASES = {
    "lr": "learning_rate",
    "max_lr": "learning_rate",
    "peak_lr": "learning_rate",
    "bs": "batch_size",
    "batch": "batch_size",
    "per_device_train_batch_size": "batch_size",
    "epochs": "steps",
    "num_epochs": "steps",
    "num_train_epochs": "steps",
    "max_steps": "steps",
    "num_steps": "steps",
    "iters": "steps",
    "iterations": "steps",
    "warmup": "warmup_steps",
    "lr_scheduler_type": "schedule",
    "lr_schedule": "schedule",
    "scheduler": "schedule",
    "wd": "weight_decay",
    "grad_clip": "clip",
    "clip_grad": "clip",
    "max_grad_norm": "clip",
    "gradient_clipping": "clip",
    "grad_accum": "gradient_accumulation",
    "accumulation": "gradient_accumulation",
    "gradient_accumulation_steps": "gradient_accumulation",
    "dtype": "precision",
    "mixed_precision": "precision",
    "bf16": "precision",
    "fp16": "precision",
    "torch_compile": "compile",
    "use_cpu": "cpu",
    "device": "cpu",
    "logging_steps": "log_every",
    "eval_steps": "validate_every",
    "save_steps": "save_every",
    "save_total_limit": "keep",
    "report_to": "trackers",
    "early_stopping_patience": "patience",
    "pe": "position_encoding",
    "encoding": "position_encoding",
    "pos_encoding": "position_encoding",
    "positional_encoding": "position_encoding",
    "sampler": "position_sampler",
    "dim": "hidden_size",
    "d_model": "hidden_size",
    "n_embd": "hidden_size",
    "width": "hidden_size",
    "hidden_dim": "hidden_size",
    "layers": "num_hidden_layers",
    "n_layer": "num_hidden_layers",
    "n_layers": "num_hidden_layers",
    "num_layers": "num_hidden_layers",
    "depth": "num_hidden_layers",
    "heads": "num_attention_heads",
    "n_head": "num_attention_heads",
    "n_heads": "num_attention_heads",
    "num_heads": "num_attention_heads",
    "random_seed": "seed",
    "out_dir": "out",
    "output": "out",
    "output_dir": "out",
    "num_workers": "workers",
    "jobs": "workers",
    "hub_model_id": "repo_id",
    "repo": "repo_id",
    "num_samples": "count",
    "samples": "count",
    "n": "count",
    "few_shot": "shots",
    "num_fewshot": "shots",
}


def last_part(name: str) -> str:
    """Return the last part of a dotted key or option, with underscores: "batch_size" for --train.batch-size."""
    return str(name).rpartition(".")[2].lstrip("-").replace("-", "_").lower()


def nearest(given, allowed: Iterable[str]) -> str | None:
    """Return the allowed name that was probably meant; None where none is near.

    Keys are compared by their last part, so that a common beginning ("--train.") makes nothing alike; what other tools
    call a key counts as that key (`ALIASES`). Among equals the one with the same beginning wins.
    """
    names = [str(name) for name in allowed]
    parts, wanted = [last_part(name) for name in names], last_part(given)
    beginning = str(given).rpartition(".")[0]
    names_of = sorted(zip(parts, names, strict=True), key=lambda pair: pair[1].rpartition(".")[0] != beginning)
    own = [part for part, name in names_of if name.rpartition(".")[0] == beginning]
    exact = [part for part in (wanted, ALIASES.get(wanted)) if part in parts]
    matches = exact or difflib.get_close_matches(wanted, own, n=1) or difflib.get_close_matches(wanted, parts, n=1)
    return next((name for part, name in names_of if matches and part == matches[0]), None)


def unknown(kind: str, given, allowed: Iterable, prefix: str = "") -> ValueError:
    """The error for a name that isn't there: what was given, the nearest, and what is allowed. `prefix` stands before the
    names wherever one is quoted: the path of a key."""
    names = [str(name) for name in allowed]
    near = nearest(given, names)
    hint = f" (did you mean {prefix + near!r}?)" if near is not None else ""
    return ValueError(f"unknown {kind} {f'{prefix}{given}'!r}{hint}; allowed: {', '.join(names)}")


def pairs_of_arms(given, arms: Iterable[str]) -> list[tuple[str, str]]:
    """The contrasts that were declared: pairs of two arms, as lists or as "one:other". Raises `ValueError` for anything
    else, an unknown arm, and a pair that is there twice, which would count twice in the correction."""
    arms, out = list(arms), []
    for one in given if isinstance(given, list) else [given]:
        pair = tuple(one.split(":")) if isinstance(one, str) else tuple(one) if isinstance(one, list | tuple) else ()
        if len(set(pair)) != 2 or len(pair) != 2:
            raise ValueError(
                f"contrast {one!r} names no two arms; it must be a pair, such as [none, rope] or none:rope"
            )
        for arm in pair:
            if arm not in arms:
                raise unknown("arm", arm, arms)
        if pair in out or pair[::-1] in out:
            raise ValueError(
                f"the contrast of {pair[0]} and {pair[1]} is declared twice; once is enough, either way round"
            )
        out.append(pair)
    return out
