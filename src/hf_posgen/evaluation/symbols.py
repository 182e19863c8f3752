"""A task's symbols as single tokens of another model's tokenizer."""

import re
from dataclasses import dataclass

from .few_shot import ANSWER, NEXT

FORMS = (" {0} {0}", "{0} {0}", "{0}{0}")  # two words in a text: tokenizers differ in what a blank belongs to
BLANKS = "Ġ▁"  # how vocabularies write a blank before a word
PREFERRED = {NEXT: ("\n", "Ċ", "<0x0A>"), ANSWER: ("Ġ=", "▁=", "=")}  # the first that is a token; else a word


@dataclass(frozen=True)
class SymbolMap:
    """How a model reads a task's tokens. ids: the model's token of each token of the task. prefix: the tokens that begin a
    text. source: where the ids come from.

    "own": the tokenizer knows the symbols by their names. "ids": there is no tokenizer, and the vocabulary is as large as
    the task's. "words": the symbols are words of one token each."""

    ids: list[int]
    prefix: tuple[int, ...]
    source: str


def map_symbols(name: str, tokenizer, size: int, task) -> SymbolMap:
    """Return how a model of `size` tokens reads a task's tokens: a function of tokenizer, size and task alone.

    Raises `ValueError` where there aren't enough words."""
    names = task.vocabulary
    if tokenizer is None:
        if size != len(names):
            raise ValueError(
                f"{name} has no tokenizer, and its vocabulary of {size} tokens is not that of task {task.name!r}, "
                f"which has {len(names)}"
            )
        return SymbolMap(list(range(size)), (), "ids")
    known = tokenizer.get_vocab()
    if all(symbol in known for symbol in names):
        return SymbolMap([known[symbol] for symbol in names], (), "own")
    ids = {
        symbol: known[text]
        for symbol in PREFERRED
        if symbol in names
        for text in PREFERRED[symbol][::-1]
        if text in known
    }
    prefix = prefix_ids(tokenizer)
    if task.bos and tokenizer.bos_token_id is not None:
        ids["[BOS]"], prefix = tokenizer.bos_token_id, ()
    missing = [symbol for symbol in names if symbol not in ids]
    words = word_ids(tokenizer, len(missing), set(ids.values()))
    if len(words) < len(missing):
        raise ValueError(
            f"the tokenizer of {name} has only {len(words)} words of one token, and task {task.name!r} needs {len(missing)}"
        )
    ids |= dict(zip(missing, words, strict=True))
    return SymbolMap([ids[symbol] for symbol in names], prefix, "words")


def word_ids(tokenizer, count: int, taken=frozenset()) -> list[int]:
    """Return the first `count` words that are one token each, side by side in a text: letters, then words of letters, then
    what is left of letters and digits, each in the order of the vocabulary. Fewer where there are no more."""
    best: list[int] = []
    for form in FORMS:
        words: list[int] = []
        for word in _candidates(tokenizer):
            token, *rest = _encode(tokenizer, form.format(word)) or [None]
            if rest == [token] and token not in words and token not in taken:
                words.append(token)
            if len(words) == count:
                return words
        best = max(best, words, key=len)
    return best


def _candidates(tokenizer) -> list[str]:
    special = set(tokenizer.all_special_tokens)
    by_id = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    words = list(dict.fromkeys(text.lstrip(BLANKS) for text, _ in by_id if text not in special))
    letters = sorted(word for word in words if re.fullmatch("[a-z]", word))
    longer = [word for word in words if re.fullmatch("[a-z]{2,}", word)]
    others = [word for word in words if re.fullmatch("[A-Za-z0-9]+", word) and not re.fullmatch("[a-z]+", word)]
    return letters + longer + others


def prefix_ids(tokenizer) -> tuple[int, ...]:
    """Return the special tokens that the tokenizer puts before a text."""
    plain, whole = (_encode(tokenizer, "a", special) for special in (False, True))
    start = next((i for i in range(len(whole)) if whole[i : i + len(plain)] == plain), 0)
    return tuple(whole[:start])


def _encode(tokenizer, text: str, special: bool = False) -> list[int]:
    """Return a text's token ids; none where a tokenizer without an unknown token has no way to write it."""
    try:
        return tokenizer(text, add_special_tokens=special).input_ids
    except Exception:  # the tokenizers library has no error of its own
        return []
