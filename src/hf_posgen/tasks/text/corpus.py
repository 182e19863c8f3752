"""A text corpus as three streams of tokens, on disk: cut into splits, tokenized once."""

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa

from ...common.names import unknown
from .files import state_of
from .opening import bars_for_a_terminal, prepared

SPLITS = ("train", "validation", "test")
BOM = "\ufeff"  # which some programs begin a file of UTF-8 with: a mark, no text
HELD_OUT = {"validation": "train[90%:95%]", "test": "train[95%:]"}  # where a corpus brings no such split


class Stream:
    """The tokens of a split's documents, one document after the other; memory-mapped."""

    def __init__(self, documents):
        lists = [chunk for chunk in documents.data.column("input_ids").chunks if len(chunk)]
        self.tokens = pa.chunked_array([chunk.flatten() for chunk in lists])
        lengths = np.concatenate([chunk.value_lengths().to_numpy() for chunk in lists]).astype(np.int64)
        self.starts = np.cumsum(lengths) - lengths  # of each document

    def __len__(self) -> int:
        return len(self.tokens)

    def read(self, starts_N: np.ndarray, length: int) -> np.ndarray:
        """Return the tokens from each start on, (N, length)."""
        rows = [self.tokens.slice(start, length).to_numpy() for start in starts_N.tolist()]
        return np.stack(rows).astype(np.int64)

    def index_in_document(self, starts_N: np.ndarray, length: int) -> np.ndarray:
        """Return (N, length): how far each token stands from the beginning of its document, or of the window that cuts
        it."""
        places = starts_N[:, None] + np.arange(length)
        begin = self.starts[np.searchsorted(self.starts, places, side="right") - 1]
        return places - np.maximum(begin, starts_N[:, None])

    def counts(self, size: int) -> np.ndarray:
        """Return (size,): how often each token id occurs."""
        return sum(np.bincount(chunk.to_numpy(), minlength=size) for chunk in self.tokens.chunks)


@dataclass(eq=False)
class Corpus:
    """The streams by split, what makes text of them, and a fingerprint of it all."""

    streams: dict[str, Stream]
    tokenizer: object
    fingerprint: str
    _shares: dict[str, np.ndarray] = field(default_factory=dict)

    def shares(self, split: str) -> np.ndarray:
        """Return (V,): how often each token id occurs, as a share of all."""
        if split not in self._shares:
            counts = self.streams[split].counts(len(self.tokenizer))
            self._shares[split] = counts / counts.sum()
        return self._shares[split]

    def unigram_nats(self, split: str) -> float:
        """Return nats per token of a split under the token counts of training, each raised by one."""
        counts = self.shares("train") * len(self.streams["train"]) + 1
        return -float((self.shares(split) * np.log(counts / counts.sum())).sum())


def plan_splits(builder, given: dict[str, str | None]) -> dict[str, str]:
    """Return {split: an expression of `datasets`, such as "train[90%:95%]"}: the corpus's own splits, else the end of its
    train.

    Raises `ValueError` for a split that isn't there, and for two that share documents.
    """
    import datasets

    sizes = {name: info.num_examples for name, info in builder.info.splits.items()}
    base = given["train"]
    if base is None:
        base = "train" if {"validation", "test"} <= set(sizes) else _without_held_out(sizes)
    out = {"train": base}
    for split, rest in HELD_OUT.items():
        out[split] = given[split] or (split if split in sizes else rest)
    ranges = {}
    for split, expression in out.items():
        try:
            ranges[split] = datasets.ReadInstruction.from_spec(expression).to_absolute(sizes)
        except (ValueError, AssertionError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{split}_split is {expression!r} ({reason}); there are: {', '.join(sizes)}") from None
        if not sum(one.to - one.from_ for one in ranges[split]):
            have = ", ".join(f"{name}: {size}" for name, size in sizes.items())
            raise ValueError(
                f"{split}_split {expression!r} holds none of the documents ({have}): name other splits, or cut a "
                "text file finer (a paragraph ends at a blank line; `sample_by: line` makes every line a document)"
            )
    for a, b in (("train", "validation"), ("train", "test"), ("validation", "test")):
        if any(_overlap(one, other) for one in ranges[a] for other in ranges[b]):
            raise ValueError(f"{a}_split {out[a]!r} and {b}_split {out[b]!r} share documents: choose others")
    return out


def _without_held_out(sizes: dict) -> str:
    """Return what is left of train when its end is held out for the splits that the corpus doesn't bring."""
    return "train[:95%]" if "validation" in sizes else "train[:90%]"


def _overlap(one, other) -> bool:
    return one.splitname == other.splitname and max(one.from_, other.from_) < min(one.to, other.to)


def load_corpus(dataset: str, config, data_files, sample_by: str, column: str, tokenizer: str, splits: tuple) -> Corpus:
    """Return the corpus that a text task names; `splits` are the expressions of train, validation and test. What was read
    before is kept while its files, and those of the tokenizer, are what they were.

    Raises `ValueError`, one sentence each, for what can't be opened, read or tokenized.
    """
    state = state_of(dataset, data_files, tokenizer)
    return _load_corpus(dataset, config, data_files, sample_by, column, tokenizer, splits, state)


@lru_cache(maxsize=4)
def _load_corpus(dataset, config, data_files, sample_by, column, name, splits, state) -> Corpus:
    import datasets

    from ..dataset.tokenizer import load_tokenizer

    builder = prepared(dataset, config, data_files, sample_by)
    tokenizer = load_tokenizer(name)
    streams = {}
    for split, expression in zip(SPLITS, splits, strict=True):
        documents = builder.as_dataset(split=expression)
        if not isinstance(documents.features.get(column), datasets.Value) or (
            documents.features[column].dtype not in ("string", "large_string")
        ):
            raise unknown(f"text column of {dataset}:", column, _text_columns(documents))
        tokens = _tokenized(documents, column, tokenizer)
        if len(tokens) == 0:
            raise ValueError(f"{dataset}: split {expression!r} holds no text in column {column!r}")
        streams[split] = Stream(tokens)
    return Corpus(streams, tokenizer, _fingerprint(streams))


def _text_columns(documents) -> list[str]:
    return [
        name for name, kind in documents.features.items() if getattr(kind, "dtype", "") in ("string", "large_string")
    ]


def _tokenized(documents, column: str, tokenizer):
    """Return rows of token ids, each with the end token where there is one; rows without text are left out."""
    import datasets

    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]

    def encode(rows):
        texts = [text.removeprefix(BOM) for text in rows[column] if text]
        texts = [text for text in texts if text and not text.isspace()]
        ids = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else []
        return {"input_ids": [one + end for one in ids if one]}

    kind = datasets.Features({"input_ids": datasets.List(datasets.Value("int32"))})
    with bars_for_a_terminal():
        return documents.map(
            encode, batched=True, remove_columns=documents.column_names, features=kind, desc="tokenizing"
        )


def _fingerprint(streams: dict[str, Stream]) -> str:
    """Return sixteen hex digits of all tokens and where their documents begin."""
    digest = hashlib.blake2b(digest_size=8)
    for stream in streams.values():
        digest.update(stream.starts.tobytes())
        for chunk in stream.tokens.chunks:
            digest.update(np.ascontiguousarray(chunk.to_numpy()))
    return digest.hexdigest()
