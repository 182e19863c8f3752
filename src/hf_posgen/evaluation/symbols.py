"""A task's symbols as single tokens of another model's tokenizer."""

import re
from dataclasses import dataclass

from .few_shot import ANSWER, NEXT

BLANKS = "Ġ▁"  # how vocabularies write a blank before a word
FORMS = (
    (" ", " "),
    ("", " "),
    ("", ""),
)  # (before, between) words in a text: tokenizers differ in what a blank belongs to
MARKS = {  # control token → how a text would write it, in order of preference; else it is a word
    NEXT: ("\n",),
    ANSWER: ("=", ":"),
    "[SEP]": (":", "|", ">"),
    "[BLANK]": (".", "_", "-"),
    "[NOISE]": (".", "_", "-"),
    "[M]": ("*", "#", "@"),
    "[Q]": ("?", "@", "#"),
    "[R]": ("|", "/", ","),
    "[C]": (">", "+", ";"),
    "[S]": ("<", "%", "&"),
    **{f"[D{digit}]": (str(digit),) for digit in range(10)},
}
LINE_ENDS = ("<0x0A>", "Ċ", "\n")  # how vocabularies write a newline, where a text of one is read otherwise


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
    """Return how a model with `size` rows of embeddings reads a task's tokens: a function of tokenizer, size and task
    alone.

    A tokenizer may know more tokens than its model has rows, and numbers with gaps: only tokens that the model holds are
    used. Raises `ValueError` where there aren't enough words, or the model lacks a token that there is no choice of."""
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
        for symbol in names:
            _require_row(name, size, symbol, known[symbol])
        return SymbolMap([known[symbol] for symbol in names], (), "own")
    ids, prefix = {}, prefix_ids(tokenizer)
    if task.bos and tokenizer.bos_token_id is not None:
        ids["[BOS]"], prefix = tokenizer.bos_token_id, ()
    for token in (*prefix, *ids.values()):
        _require_row(name, size, tokenizer.convert_ids_to_tokens(token), token)
    ids |= mark_ids(tokenizer, size, [symbol for symbol in names if symbol in MARKS])
    missing = [symbol for symbol in names if symbol not in ids]
    words = word_ids(tokenizer, size, len(missing), set(ids.values()))
    if len(words) < len(missing):
        raise ValueError(
            f"the tokenizer of {name} has only {len(words)} words of one token that the model holds, and task "
            f"{task.name!r} needs {len(missing)}: choose a task of fewer symbols"
        )
    ids |= dict(zip(missing, words, strict=True))
    return SymbolMap([ids[symbol] for symbol in names], prefix, "words")


def _require_row(name: str, size: int, text: str, token: int) -> None:
    if not 0 <= token < size:
        raise ValueError(f"{name} has {size:,} rows of embeddings, and {text!r} is token {token:,} of its tokenizer")


def mark_ids(tokenizer, size: int, symbols: list[str]) -> dict[str, int]:
    """Return {control token: the token of a mark that a text would put there}, different ones, as far as there are."""
    before, between, words = _chosen_words(tokenizer, size, 1)
    ids: dict[str, int] = {}
    for symbol in symbols:
        times = 1 if symbol == NEXT else 2  # a line ends once; others may stand side by side
        tokens = [_token_of_mark(tokenizer, mark, times, before, between, words) for mark in MARKS[symbol]]
        if symbol == NEXT:
            tokens += [tokenizer.get_vocab().get(text) for text in LINE_ENDS]
        unusable = {None, *tokenizer.all_special_ids, *ids.values(), *words}
        usable = [token for token in tokens if token not in unusable and token < size]
        ids |= {symbol: usable[0]} if usable else {}
    return ids


def _token_of_mark(tokenizer, mark: str, times: int, before: str, between: str, words: dict[int, str]) -> int | None:
    """Return the token of a mark that stays whole between two words, `times` in a row; None where it is joined, or cut."""
    for token, word in words.items():
        for lead in (between, ""):
            text = f"{before}{word}{times * (lead + mark)}{between}{word}"
            read = encode(tokenizer, text)
            if len(set(read[1:-1])) == 1 and read == [token, *[read[1]] * times, token]:
                return read[1]
    return None


def word_ids(tokenizer, size: int, count: int, taken=frozenset()) -> list[int]:
    """Return the first `count` words that are one token each: letters, then words of letters, then what is left of letters
    and digits, each in the order of the vocabulary. Fewer where there are no more.

    A word is taken if a text of it and those before it, side by side in every order of two, is read as these tokens: pieces
    of words would be joined. size: only tokens below it."""
    *_, words = _chosen_words(tokenizer, size, count, taken)
    return list(words)


def _chosen_words(tokenizer, size: int, count: int, taken=frozenset()) -> tuple[str, str, dict[int, str]]:
    """Return what stands before and between words in a text, and the words, {token: text}."""
    best = ("", "", {})
    for before, between in FORMS:
        chosen: dict[int, str] = {}
        for word in _candidates(tokenizer):
            if len(chosen) == count:
                break
            token = _token_of_word(tokenizer, word, before, between)
            if token is None or token >= size or token in chosen or token in taken:
                continue
            neighbours = [token, *(part for other in chosen for part in (other, token))]
            text = between.join([word, *(part for other in chosen.values() for part in (other, word))])
            if encode(tokenizer, before + text) == neighbours:
                chosen[token] = word
        if len(chosen) > len(best[2]) or len(chosen) == count:
            best = (before, between, chosen)
        if len(chosen) == count:
            break
    return best


def _token_of_word(tokenizer, word: str, before: str, between: str) -> int | None:
    """Return the token of a word that stays whole beside itself; None where it is cut, or joined with the next."""
    read = encode(tokenizer, f"{before}{word}{between}{word}")
    return read[0] if len(read) == 2 and read[0] == read[1] else None


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
    plain, whole = (encode(tokenizer, "a", special) for special in (False, True))
    start = next((i for i in range(len(whole)) if whole[i : i + len(plain)] == plain), 0)
    return tuple(whole[:start])


def encode(tokenizer, text: str, special: bool = False) -> list[int]:
    """Return a text's token ids; none where a tokenizer without an unknown token has no way to write it."""
    try:
        return tokenizer(text, add_special_tokens=special).input_ids
    except Exception:  # the tokenizers library has no error of its own
        return []
