"""Delay named by digits: what stood so many tokens back as the cue says?"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .core.bag_of_words import bag_of_words, measured_bag_of_words
from .core.cells import Cell
from .core.parameters import parameter
from .core.token_task import IGNORE
from .core.window_task import WindowTask

_TO_50 = {"window": 128, "digits": 3, "d_max": 50, "test_distances": "51-59,75,99-101,110"}


@dataclass(frozen=True, kw_only=True)
class CuedDelay(WindowTask):
    """Retrieval at the delay that a cue names in digits ("trained to 50, asked for 101", as a summary of study 2 has it).

        x x [x] x x x x [Q] [D0] [D4] (x)             digits 2, length 10, distance 4
             ↑ <- 4 ->↑              └ answer slot, scored on the logits at the last digit
        answer "cue":   x x x x x x x [Q] [D0] [D4] ([D0] [D4])        the control: the cue is only echoed
        hops 2:         x x [3] x x x x [5] x [Q] [D0] [D1] (3)        1 back stands 5, so 5 + 1 further back stands 3

    distance: the delay, from the last symbol back (0 is that one). Cues are zero-padded to `digits`, so that an unseen
    delay is spelled with trained symbols; `unseen_digits` tells which of its digits were never trained in their place.
    hops: each symbol reached names the next delay, itself and one more, `hops` - 1 times.
    """

    name = "cued_delay"
    paper = "2609.11913"
    configs = {
        "digits_0_31": {},
        "digits_0_50_asked_101": _TO_50,
        "digits_holes_asked_101": {  # trained at 0..50, 60, 70, 80, 90, 100: every digit of 101 in its place
            "window": 128,
            "digits": 3,
            "d_max": 100,
            "held_out": "51-59,61-69,71-79,81-89,91-99",
            "test_distances": "101-109",
        },
        "echo_of_the_cue": _TO_50 | {"answer": "cue"},
        "two_hops": {"hops": 2, "symbols": 8},
    }
    control_names = ("Q", *(f"D{i}" for i in range(10)))

    digits: int = parameter(2, "digits of the cue", least=1, most=6)
    hops: int = parameter(1, "symbols looked up, each at the delay that the one before names", least=1, most=64)
    answer: Literal["data", "cue"] = parameter("data", "what is answered: the symbol at the delay, or the cue itself")

    def check(self) -> None:
        self.require(self.hops == 1 or self.answer == "data", "hops go with answer 'data' only")
        super().check()

    @property
    def paste(self) -> bool:
        """An echoed cue is one answer."""
        return self.answer == "cue"

    @property
    def answer_slots(self) -> int:
        return self.digits if self.answer == "cue" else 1

    def possible(self, length: int) -> range:
        symbols = length - 1 - self.digits
        return range(0, min(symbols - (self.hops - 1) * self.symbols, 10**self.digits))

    def unseen_digits(self, distance: int) -> list[int]:
        """Return the places, from the left, at which a delay has a digit that no trained delay has there."""
        trained = {tuple(f"{d:0{self.digits}d}") for d in self.trained_distances.tolist()}
        seen = [{cue[place] for cue in trained} for place in range(self.digits)]
        return [place for place, digit in enumerate(f"{distance:0{self.digits}d}") if digit not in seen[place]]

    def draw(self, rng: np.random.Generator, count: int, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        L, D, rows = cell.length, self.digits, np.arange(count)
        n = L - 1 - D
        tokens = np.empty((count, L + self.answer_slots), np.int64)
        tokens[:, :n] = rng.integers(self.symbols, size=(count, n), dtype=np.int32)
        d = self.distances(rng, count, cell)
        cue = self.control("D0") + d[:, None] // 10 ** np.arange(D - 1, -1, -1) % 10
        tokens[:, n], tokens[:, n + 1 : L] = self.control("Q"), cue
        if self.answer == "cue":
            tokens[:, L:] = cue
        else:
            place = n - 1 - d
            for _ in range(self.hops - 1):
                place = place - tokens[rows, place] - 1
            tokens[:, L] = tokens[rows, place]
        labels = np.full_like(tokens, IGNORE)
        labels[:, L:] = tokens[:, L:]
        return tokens, labels

    def oracle(self, tokens: list[int]) -> dict[int, int]:
        ask = tokens.index(self.control("Q"))
        cue, end = tokens[ask + 1 : ask + 1 + self.digits], ask + 1 + self.digits
        if self.answer == "cue":
            return {end + i: digit for i, digit in enumerate(cue)}
        place = ask - 1 - int("".join(str(digit - self.control("D0")) for digit in cue))
        for _ in range(self.hops - 1):
            place -= tokens[place] + 1
        return {end: tokens[place]}

    def chance(self, cell: Cell) -> float:
        return 1 / (10 if self.answer == "cue" else self.symbols)

    def baselines(self, cell: Cell) -> dict[str, float]:
        """Return what the commonest symbol scores: exactly, but for several hops (measured on 4,000 sequences)."""
        if self.answer == "cue":
            return {}
        if self.hops > 1:
            tokens, labels = self.draw(np.random.default_rng(0), 4000, cell)
            return {"bag_of_words": measured_bag_of_words(tokens, labels, self.symbols)}
        return {"bag_of_words": bag_of_words(cell.length - 1 - self.digits, self.symbols)}
