"""Your own text: any corpus that `datasets` opens, with any tokenizer."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from ..core.cells import Cell
from ..core.parameters import MOST_TEST_TOKENS, MOST_TOKENS, Numbers, parameter
from ..core.token_task import IGNORE, TokenTask
from .corpus import SPLITS, Corpus, load_corpus, plan_splits
from .opening import prepared

BUCKETS = 8  # of a trained window: how fine perplexity by position is


@dataclass(frozen=True, kw_only=True)
class Text(TokenTask):
    """Next-token prediction on text that somebody wrote, in packed windows, at up to 16 times the trained length.

        documents    Once upon a time ... [end] Call me ... [end] It was ...
        windows      └───── length ─────┘└───── length ─────┘└──── ...          every token but the first is scored

    dataset: a file (text, JSON lines, CSV, Parquet), a folder, a data set of the Hub (with `config`), or the name of a
    builder of `datasets` (with `data_files`); its `column` holds the text, a row is a document. In text files a document is
    what `sample_by` names. tokenizer: a folder, a Hub id, or "bytes" (one token per byte of UTF-8; no download).

    The documents of a split are joined, each with the tokenizer's end token after it, and cut into windows that don't
    overlap. `documents`: attention reads on across their ends ("joined", as language models are mostly trained), or each
    stands alone: its positions begin at 0 and it sees nothing before it ("apart"). Training shuffles the windows anew in
    each epoch.

    Splits are disjoint by document. They are expressions of `datasets` such as "train[90%:95%]"; by default the corpus's
    own, else the last documents: nine tenths for training, then a twentieth each for validation and test.

    Evaluated at `test_lengths` (default: 1, 2, 4, 8 and 16 times `length`, as far as the test text reaches):
    non-overlapping windows of the *same* text at each length, every token but a window's first scored (as Press et al.
    2021, arXiv 2108.12409, evaluate). Longer windows therefore also win because fewer tokens stand near a window's
    beginning; perplexity by position, in rows beside it, separates the two.

    fingerprint: of the tokens, filled in at first, so that a run never goes on with another text.
    """

    name = "text"
    generated = False
    metric = "perplexity"
    configs = {}

    dataset: str | None = parameter(None, "a file, a folder, a data set of the Hub, or a builder of `datasets`")
    config: str | None = parameter(None, "the configuration of a data set of the Hub")
    data_files: str | None = parameter(None, "files for a builder of `datasets`, such as `books/*.txt`")
    column: str = parameter("text", "the column that holds the text")
    sample_by: Literal["line", "paragraph", "document"] = parameter("paragraph", "what a document of a text file is")
    tokenizer: str = parameter("bytes", "a folder, a Hub id, or `bytes`")
    length: int = parameter(128, "tokens of a trained window", least=2, most=MOST_TOKENS)
    test_lengths: Numbers | None = parameter(
        None, "tokens of the evaluated windows", least=2, most=MOST_TEST_TOKENS, evaluation=True
    )
    documents: Literal["joined", "apart"] = parameter("joined", "whether attention reads on across documents")
    train_split: str | None = parameter(None, "the documents to train on, such as `train[:90%]`")
    validation_split: str | None = parameter(None, "the documents to select by")
    test_split: str | None = parameter(None, "the documents to evaluate on")
    fingerprint: str | None = parameter(None, "a digest of the tokens, filled in")

    def __post_init__(self):
        where = self.dataset
        if isinstance(where, str) and Path(where).exists() and where[0] not in "./":
            self._set("dataset", f"./{where}")  # so that nobody takes it for a data set of the Hub
        super().__post_init__()

    def check(self) -> None:
        need = self.require
        need(bool(self.dataset), "dataset is not given: name a file, a folder, a data set of the Hub, or a builder")
        short = [n for n in self.test_lengths or () if n < self.length]
        need(not short, f"test_lengths {short} are below length {self.length}: perplexity by position covers those")
        corpus, longest = self.corpus, max((self.length, *(self.test_lengths or ())))
        need(not self.bos or self.bos_token_id is not None, f"the tokenizer {self.tokenizer!r} has no token for bos")
        need(not self.bos or self.documents == "joined", "bos goes with documents 'joined' only")
        need(
            self.fingerprint in (None, corpus.fingerprint),
            f"the text of {self.dataset} (fingerprint {corpus.fingerprint}) is not what it was ({self.fingerprint})",
        )
        for split, most in (("train", self.length), ("validation", self.length), ("test", longest)):
            have = len(corpus.streams[split])
            need(have >= most, f"split {split!r} has {have} tokens: too few for a window of {most}")

    @cached_property
    def expressions(self) -> dict[str, str]:
        """{split: the expression that names its documents}."""
        given = {split: getattr(self, f"{split}_split") for split in SPLITS}
        return plan_splits(prepared(self.dataset, self.config, self.data_files, self.sample_by), given)

    @cached_property
    def corpus(self) -> Corpus:
        where = (self.dataset, self.config, self.data_files, self.sample_by, self.column, self.tokenizer)
        return load_corpus(*where, tuple(self.expressions[split] for split in SPLITS))

    def derived(self) -> dict:
        most = len(self.corpus.streams["test"])
        lengths = tuple(self.length * times for times in (1, 2, 4, 8, 16) if self.length * times <= most)
        names = {f"{split}_split": expression for split, expression in self.expressions.items()}
        return names | {"test_lengths": lengths, "fingerprint": self.corpus.fingerprint}

    @property
    def drawn_parameters(self) -> dict:
        """The tokens, by their fingerprint, not by where they were read; and how they are cut."""
        return {key: getattr(self, key) for key in ("fingerprint", "length", "documents", "bos")}

    @classmethod
    def hub_corpus(cls, spec: dict) -> str | None:
        """Return the Hub id of the corpus; None for what lies on the user's own disk."""
        return spec["dataset"] if spec["data_files"] is None and spec["dataset"][0] not in "./~" else None

    def fits(self, summary: dict) -> bool:
        """Whether validation beats the frequencies of the tokens: else nothing of context was learned."""
        return summary.get("nll", math.inf) < self.unigram_nats("validation")

    def build_tokenizer(self):
        """Return the tokenizer that made the tokens."""
        return self.corpus.tokenizer

    @property
    def bucket(self) -> int:
        """How many positions share a number in perplexity by position."""
        return max(1, self.length // BUCKETS)

    def splits(self) -> dict[str, tuple[Cell, ...]]:
        trained = (Cell(self.length, None),)
        longer = tuple(Cell(n, None) for n in sorted(set(self.test_lengths)) if n > self.length)
        return {"train": trained, "validation": trained, "test": trained, "longer": longer}

    @property
    def columns(self) -> tuple[str, ...]:
        return ("input_ids", "labels", *(("position_ids",) if self.documents == "apart" else ()))

    @property
    def data_symbols(self) -> int:
        return self.vocab_size

    @property
    def vocabulary(self) -> list[str]:
        return self.corpus.tokenizer.convert_ids_to_tokens(range(self.vocab_size))

    @property
    def vocab_size(self) -> int:
        return len(self.corpus.tokenizer)

    @property
    def bos_token_id(self) -> int | None:
        return self.corpus.tokenizer.bos_token_id

    @property
    def pad_token_id(self) -> int | None:
        return self.corpus.tokenizer.pad_token_id

    @property
    def eos_token_id(self) -> int | None:
        return self.corpus.tokenizer.eos_token_id

    def _stream(self, split: str):
        return self.corpus.streams[split if split in SPLITS else "test"]

    def available(self, split: str, cell: Cell, count: int) -> int:
        """Return how many windows of a cell cover the text of `count` trained windows: whole windows of the longest
        length, so that every length reads the same text."""
        if split == "train":
            return count
        longest = self.length if split == "validation" else max((self.length, *self.test_lengths))
        text = min(count * self.length, len(self._stream(split)))
        return max(text // longest, 1) * longest // cell.length

    def block(self, seed: int, split: str, cell: Cell, number: int, size: int) -> tuple[np.ndarray, ...]:
        """Read windows in the order of the text; of train in an order of their own in each epoch. The first follows the
        last."""
        stream, index = self._stream(split), np.arange(number * size, (number + 1) * size)
        windows = len(stream) // cell.length
        epoch, place = np.divmod(index, windows)
        if split == "train":
            place = np.array([_order(windows, seed, e)[p] for e, p in zip(epoch.tolist(), place.tolist(), strict=True)])
        return self._windows(stream, place * cell.length, cell.length)

    def _windows(self, stream, starts_N: np.ndarray, length: int) -> tuple[np.ndarray, ...]:
        tokens, more = stream.read(starts_N, length), []
        labels = tokens.copy()
        if self.documents == "apart":
            more = [stream.index_in_document(starts_N, length)]
            labels[more[0] == 0] = IGNORE
        if not self.bos:
            labels[:, 0] = IGNORE
        return self.anchored((tokens, labels, *more))

    def chance(self, cell: Cell) -> float:
        """Return the accuracy of always naming the token that is commonest in training."""
        return float(self.corpus.shares("test")[self.corpus.shares("train").argmax()])

    def ceiling(self, cell: Cell) -> None:
        """Return None: nobody knows."""

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Return the perplexity of a model that knows how often each token occurs in training, and nothing of its
        context."""
        return {"unigram_perplexity": float(np.exp(self.unigram_nats("test")))}

    def unigram_nats(self, split: str) -> float:
        """Return nats per token of a split for a model that knows the frequencies of training alone."""
        return self.corpus.unigram_nats(split)


@lru_cache(maxsize=2)
def _order(windows: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.Generator(np.random.SFC64([seed, epoch])).permutation(windows)
