"""A task's symbols as single tokens of somebody else's tokenizer."""

import re

from .few_shot import ASK, NEXT

FORMS = (" {0} {0}", "{0} {0}", "{0}{0}")  # how two words stand in a text: tokenizers differ in what a blank belongs to
BLANKS = "Ġ▁"  # how vocabularies write a blank before a word
PREFERRED = {NEXT: ("\n", "Ċ", "<0x0A>"), ASK: ("Ġ=", "▁=", "=")}  # the first that is a token; else a word


def task_ids(name: str, tokenizer, size: int, task) -> tuple[list[int], tuple[int, ...], str]:
    """(the model's token of each token of the task, what it begins a text with, how they were found).

    "own": the tokenizer knows the symbols by their names. "ids": there is no tokenizer, and the vocabulary is as large as
    the task's. "words": the symbols are words of one token each. A function of tokenizer and task alone. Raises
    `ValueError` where there aren't enough words."""
    names = task.vocabulary
    if tokenizer is None:
        if size != len(names):
            raise ValueError(
                f"{name} has no tokenizer, and its vocabulary of {size} tokens is not that of task {task.name!r}, "
                f"which has {len(names)}"
            )
        return list(range(size)), (), "ids"
    known = tokenizer.get_vocab()
    if all(one in known for one in names):
        return [known[one] for one in names], (), "own"
    ids = {one: known[text] for one in PREFERRED if one in names for text in PREFERRED[one][::-1] if text in known}
    prefix = prefix_ids(tokenizer)
    if task.bos and tokenizer.bos_token_id is not None:
        ids["[BOS]"], prefix = tokenizer.bos_token_id, ()
    wanted = [one for one in names if one not in ids]
    words = word_ids(tokenizer, len(wanted), set(ids.values()))
    if len(words) < len(wanted):
        raise ValueError(
            f"the tokenizer of {name} has only {len(words)} words of one token, and task {task.name!r} needs {len(wanted)}"
        )
    ids |= dict(zip(wanted, words, strict=True))
    return [ids[one] for one in names], prefix, "words"


def word_ids(tokenizer, count: int, taken=frozenset()) -> list[int]:
    """The first `count` words that are one token each, side by side in a text: letters, then words of letters, then what
    is left of letters and digits, each in the order of the vocabulary. Fewer where there are no more."""
    best: list[int] = []
    for form in FORMS:
        found: list[int] = []
        for word in _candidates(tokenizer):
            one, *rest = tokenizer(form.format(word), add_special_tokens=False).input_ids or [None]
            if rest == [one] and one not in found and one not in taken:
                found.append(one)
            if len(found) == count:
                return found
        best = max(best, found, key=len)
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
    """The special tokens that the tokenizer puts before a text."""
    plain, whole = (tokenizer("a", add_special_tokens=added).input_ids for added in (False, True))
    start = next((i for i in range(len(whole)) if whole[i : i + len(plain)] == plain), 0)
    return tuple(whole[:start])
