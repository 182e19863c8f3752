"""The columns of a results row: the one table that reports, the page, model cards and reproductions read.

A row is one cell (a length and a distance) of one split, measured on one run. Its scores are the columns below, each with
the interval `KEY_low`, `KEY_high` at 95 %; what a strategy without positions scores is in the dictionary `baselines`.
"""

import math
from dataclasses import dataclass
from typing import Literal

REQUIRED = ("arm", "encoding", "seed", "split", "length", "exact_match", "fit", "task")
DEFAULTS = {
    "distance": math.nan,
    "chance": math.nan,
    "exact_match_chance": math.nan,
    "ceiling": 1.0,
    "baselines": None,
    "panel": "",
    "run": "",
    "kind": "",
    "task_digest": "",
}
IN_DISTRIBUTION = ("train", "validation", "test")
UNSEEN = ("longer", "farther", "nearer", "between", "both")
SPLITS = (*IN_DISTRIBUTION, *UNSEEN)
BEYOND = {"length": "longer", "distance": "farther"}  # axis: the split in which it alone exceeds the trained range
AXES = tuple(BEYOND)

BASELINES = {  # key in a row's `baselines`: label
    "bag_of_words": "bag of words",
    "ngram_1": "1-gram baseline",
    "ngram_2": "2-gram baseline",
    "ngram_1_rest": "1-gram baseline, rest",
    "ngram_2_rest": "2-gram baseline, rest",
    "unigram_perplexity": "token frequencies",
}


@dataclass(frozen=True)
class Score:
    """A column that holds a score.

    kind: a share of right answers (0 to 1, more is better), or a perplexity (from 1, less is better). hub: the Hub's id of
    the metric; None for a score that is not published. baselines: those that are counted over the same tokens and may see
    no more than the model does; only they may stand beside the score. baselines_of_pastes: the same where an answer is a
    paste of several tokens, if that differs.
    """

    key: str
    label: str
    kind: Literal["share", "perplexity"]
    hub: str | None
    baselines: tuple[str, ...]
    baselines_of_pastes: tuple[str, ...] | None = None

    @property
    def is_share(self) -> bool:
        return self.kind == "share"

    @property
    def chance(self) -> str | None:
        """The column of what a guess that reads nothing scores: of whole answers, of tokens, or none."""
        if self.key == "exact_match":
            return "exact_match_chance"
        return "chance" if self.is_share else None

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value that an interval may reach."""
        return (0.0, 1.0) if self.is_share else (0.0, math.inf)

    def baselines_beside(self, pasted: bool) -> tuple[str, ...]:
        """Return the keys of the baselines that may stand beside this score."""
        return self.baselines_of_pastes if pasted and self.baselines_of_pastes is not None else self.baselines


ALL_TOKENS = ("bag_of_words", "ngram_1", "ngram_2")
REST_OF_PASTE = ("bag_of_words", "ngram_1_rest", "ngram_2_rest")
# What matches content can't begin a paste, and reads the right tokens; of whole pastes no baseline is known.
SCORES = {
    score.key: score
    for score in (
        Score("exact_match", "exact match", "share", "exact_match", ALL_TOKENS, ()),
        Score("token_accuracy", "token accuracy", "share", "accuracy", ALL_TOKENS),
        Score("first_accuracy", "first pasted token", "share", "accuracy", ("bag_of_words",)),
        Score("rest_accuracy", "rest of the paste", "share", "accuracy", REST_OF_PASTE),
        Score("free_running_accuracy", "token accuracy, free running", "share", None, ("bag_of_words",)),
        Score("perplexity", "perplexity", "perplexity", "perplexity", ("unigram_perplexity",)),
    )
}


def chance_beside(row: dict, metric: str) -> float | None:
    """Return what a guess that reads nothing scores of this very score in a row; None where the row doesn't say."""
    column = SCORES[metric].chance
    if column == "exact_match_chance" and "first_accuracy" not in row:
        column = "chance" if row.get(column) is None else column  # each answer is one token: the same
    return row.get(column) if column else None


def label(metric: str) -> str:
    """Return the words for a score."""
    return SCORES[metric].label


def is_share(metric: str) -> bool:
    """Return whether a score is a share of right answers, and not a perplexity."""
    return SCORES[metric].is_share
