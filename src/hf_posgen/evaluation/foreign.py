"""Somebody else's causal language model as an evaluation target."""

import hashlib
import json
from pathlib import Path

import numpy as np

from ..metrics.functional import IGNORE
from ..run.schema import EvaluationConfig
from ..tasks import TASKS, Task, TokenTask, build_task, resolve_task
from .any_model import AnyModel, Translated
from .cells import EvaluationTarget, task_facts
from .few_shot import FewShot
from .measuring import Measurement
from .symbols import SymbolMap, encode, map_symbols, prefix_ids

PROMPTS = ("symbols", "few-shot")
MAKERS_FACTS = (  # columns of a row that only the maker of a model could fill in
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


def example_prompt(measurement: Measurement, symbol_map: SymbolMap, tokenizer) -> dict:
    """Return one whole prompt as text, its answer, and whether the tokenizer reads the text as these very tokens.

    It is the first sequence of the first trained cell up to the last answer that is scored."""
    task, cell = measurement.task, measurement.task.cells("validation")[0]
    batch = measurement.batch("validation", cell, 0, 1)
    labels, (tokens,) = batch["labels"][0], batch["input_ids"]
    scored = np.flatnonzero(labels != IGNORE)
    start = scored[-1]
    while task.paste and start - 1 in scored:
        start -= 1
    ids = [*symbol_map.prefix, *(symbol_map.ids[token] for token in tokens[:start])]
    answer = [symbol_map.ids[token] for token in labels[start : scored[-1] + 1]]
    if tokenizer is None:
        text, answer_text, reads_back = " ".join(map(str, ids)), " ".join(map(str, answer)), True
    else:
        text, answer_text = tokenizer.decode(ids), tokenizer.decode(answer)
        own = ids[len(symbol_map.prefix) :]
        reads_back = encode(tokenizer, tokenizer.decode(own)) == own
    return {"cell": str(cell), "prompt": text, "answer": answer_text, "reads_back": reads_back}


def prompted_task(spec: dict | str, prompt: str, shots: int) -> TokenTask:
    """Return the task whose sequences a model reads: as they are, or after `shots` solved ones, then in the layout that its
    task prefers for prompts unless the spec names a configuration or other parameters. Raises `ValueError` for a task that
    no language model reads, and for one that can't be shown by example."""
    task = build_task(spec if prompt == "symbols" else _for_prompts(spec))
    if not isinstance(task, TokenTask):
        raise ValueError(f"task {task.name!r} is real-valued: no language model reads it")
    return task if prompt == "symbols" else FewShot(task=task, shots=shots)


def _for_prompts(spec: dict | str) -> dict | str:
    """Return a task's spec with the parameters that its task prefers for prompts, where it leaves them open."""
    named = {"name": spec} if isinstance(spec, str) else spec
    preferred = getattr(TASKS.get(named.get("name")), "prompt_parameters", {})
    return spec if "config" in named else preferred | named


def foreign_target(
    opened: AnyModel, task: TokenTask, prompt: str, data_seed: int, past_limit: bool
) -> EvaluationTarget:
    """Return a model as an evaluation target. Raises `ValueError` for one that can't be evaluated on this task."""
    _refuse(opened, task, past_limit)
    size = opened.model.get_input_embeddings().num_embeddings
    if not task.generated:
        _refuse_unknown_tokens(opened.name, task, size)
        symbol_map, symbols = SymbolMap(list(range(size)), _text_prefix(task), "own"), {}
    else:
        symbol_map = map_symbols(opened.name, opened.tokenizer, size, task)
        symbols = _symbols_as_text(opened, task, symbol_map)
    model = Translated(opened.model, symbol_map.ids, symbol_map.prefix).to(opened.model.device)
    batch_tokens = min(EvaluationConfig.batch_tokens, max(1, LOGITS // size))
    measurement = Measurement(model, task, data_seed, EvaluationConfig.count, batch_tokens)
    about = _about(opened, task, prompt, data_seed) | {
        "prefix": list(symbol_map.prefix),
        "symbols_are": symbol_map.source,
        "symbols": symbols,
    }
    if symbols:
        about["example"] = example_prompt(measurement, symbol_map, opened.tokenizer)
    facts = _facts(opened, task, data_seed) | {"bos": task.bos or bool(symbol_map.prefix), "prompt": prompt}
    facts["seen_in"] = "prompt" if prompt == "few-shot" else "unknown"
    facts["symbols"] = f"{symbol_map.source} {hashlib.sha256(json.dumps(symbols).encode()).hexdigest()[:8]}"
    return EvaluationTarget(
        name=opened.name,
        measurement=measurement,
        facts=facts,
        about=about,
        limit=None if past_limit else opened.limit,
        prefix=len(symbol_map.prefix),
        past_limit=", or evaluate it on more than it was made for with --past-limit" if opened.goes_past else "",
    )


def _refuse(opened: AnyModel, task: Task, past_limit: bool) -> None:
    if "positions" in task.columns and opened.config.model_type != "posgen":
        raise ValueError(f"task {task.name!r} gives its tokens positions of its own, and {opened.name} takes none")
    if past_limit and opened.limit is not None and not opened.goes_past:
        raise ValueError(f"{opened.name} can't read past its {opened.limit:,} tokens: only rotary models can")


def _text_prefix(task: TokenTask) -> tuple[int, ...]:
    """Return what stands before each window of text: the special tokens that its tokenizer puts before a text, unless the
    windows begin with the anchor token anyway, or several documents begin in one."""
    positioned = "position_ids" in task.columns
    return () if task.bos or positioned else prefix_ids(task.build_tokenizer())


def _refuse_unknown_tokens(name: str, task: TokenTask, size: int) -> None:
    """Raise `ValueError` where a text holds a token that the model has no row for."""
    for split, stream in task.corpus.streams.items():
        highest = max(int(chunk.to_numpy().max()) for chunk in stream.tokens.chunks)
        if highest >= size:
            raise ValueError(
                f"{name} has {size:,} rows of embeddings, and the text's {split} split holds token {highest:,} of the "
                f"tokenizer {task.tokenizer!r}"
            )


def _symbols_as_text(opened: AnyModel, task: TokenTask, symbol_map: SymbolMap) -> dict[str, list]:
    """Return {symbol of the task: [the model's token, its text]}."""
    decode = opened.tokenizer.decode if opened.tokenizer else None
    pairs = zip(task.vocabulary, symbol_map.ids, strict=True)
    return {symbol: [token, decode([token]) if decode else symbol] for symbol, token in pairs}


def _about(opened: AnyModel, task: TokenTask, prompt: str, data_seed: int) -> dict:
    """Return what identifies an evaluation, as evaluation.json holds it."""
    shots = task.shots if isinstance(task, FewShot) else 0
    return {
        "model": opened.name,
        "revision": opened.revision,
        "model_digest": opened.digest,
        "task": resolve_task(task.task if shots else task),
        "prompt": prompt,
        "shots": shots,
        "data_seed": data_seed,
        "limit": opened.limit,
    }


def _facts(opened: AnyModel, task: TokenTask, data_seed: int) -> dict:
    """Return what every row holds of the model: None where only its maker knows."""
    label = Path(opened.name).resolve().name if Path(opened.name).is_dir() else opened.name
    return (
        dict.fromkeys(MAKERS_FACTS)
        | task_facts(task)
        | {
            "run": label,
            "arm": label,
            "panel": f"few-shot, {task.shots} examples" if isinstance(task, FewShot) else "",
            "encoding": opened.encoding,
            "seed": 0,  # one model, whatever the draws of data
            "data_seed": data_seed,
            "head_size": opened.head_size,
            "parameters": opened.model.num_parameters(),
            "dtype": str(opened.model.dtype).removeprefix("torch."),
            "revision": opened.revision,
            "model_digest": opened.digest,
        }
    )
