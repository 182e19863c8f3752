"""Tasks over a vocabulary."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .cells import Cell
from .parameters import parameter
from .task import Task

IGNORE = -100
FIT = 0.99  # token accuracy at the worst trained cell
FIT_PASTE = 0.95  # mean token accuracy over the trained cells, where a run of labels is one answer


@dataclass(frozen=True, kw_only=True)
class TokenTask(Task):
    """A task whose sequences are token ids: data symbols first, then the control tokens.

    `sample` returns tokens and labels (N, T), both int64. Labels are transformers': the label at t is scored on the
    logits at t - 1, and -100 is not scored.

    prompt_parameters: those of a few-shot prompt unless others are given, so that it reads as a text: no padding, and no
    more symbols than there are letters.
    """

    control_names = ()  # control tokens besides BOS and PAD
    prompt_parameters = {}
    paste = False  # whether a run of scored labels is one answer

    bos: bool = parameter(
        False, "begin each sequence with an anchor token, which decides what a model without encoding can do"
    )

    @property
    def data_symbols(self) -> int:
        """How many symbols carry data; their token ids come first."""
        raise NotImplementedError

    @cached_property
    def vocabulary(self) -> list[str]:
        """Token id → printable name."""
        return [str(i) for i in range(self.data_symbols)] + [
            f"[{name}]" for name in (*self.control_names, "BOS", "PAD")
        ]

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary)

    def control(self, name: str) -> int:
        """Return the token id of a control token."""
        return self.vocabulary.index(f"[{name}]")

    @property
    def bos_token_id(self) -> int:
        return self.control("BOS")

    @property
    def pad_token_id(self) -> int:
        return self.control("PAD")

    @property
    def eos_token_id(self) -> None:
        """No sequence of these tasks ends by itself."""
        return None

    def sample(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, ...]:
        self.check_cell(cell)
        return self.anchored(self.draw(rng, count, cell))

    def anchored(self, arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """Return tokens, labels and positions (N, T), with the anchor token before them where the task has one."""
        if not self.bos:
            return arrays
        anchor = (self.bos_token_id, IGNORE, 0)
        return tuple(np.pad(a, ((0, 0), (1, 0)), constant_values=v) for a, v in zip(arrays, anchor, strict=False))

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, ...]:
        """Draw what `sample` returns, without the anchor token."""
        raise NotImplementedError

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        """Return {place: answer} for one sequence, by the rule, in plain Python; the answer at t reads tokens before t
        only."""
        raise NotImplementedError

    def slots(self) -> int:
        return int(self.bos) + self.answer_slots

    def chance(self, cell: Cell) -> float:
        """Return the accuracy of a uniform guess among the answers that can occur."""
        return 1.0 / self.data_symbols

    def fits(self, summary: dict) -> bool:
        """Whether a run learned what it was shown, from its validation: `token_accuracy`, the mean over trained cells, and
        `worst_token_accuracy`."""
        if self.paste:
            return summary["token_accuracy"] >= FIT_PASTE
        return summary["worst_token_accuracy"] >= FIT

    def build_tokenizer(self):
        """Return the tokenizer of transformers that reads and writes this task's tokens."""
        from ..dataset.tokenizer import symbol_tokenizer

        return symbol_tokenizer(self.vocabulary)
