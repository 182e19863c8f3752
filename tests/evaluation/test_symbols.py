"""Symbols as single tokens of somebody else's tokenizer."""

import pytest

from hf_posgen.evaluation.few_shot import FewShot
from hf_posgen.evaluation.symbols import SymbolMap, map_symbols, prefix_ids, word_ids
from hf_posgen.evaluation.targets import run_evaluation
from hf_posgen.tasks import build_task
from tests.helpers.tiny_models import TOKENIZERS, WORDS, llama, saved

TASK = build_task("fixed_offset")  # 16 symbols, [BOS], [PAD]


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param]()


def test_words_are_distinct_tokens_that_a_text_of_them_is_split_into(tokenizer):
    symbols = map_symbols("m", tokenizer, len(tokenizer), TASK)
    ids = symbols.ids
    assert symbols.source == "words" and len(ids) == len(set(ids)) == TASK.vocab_size
    assert symbols == map_symbols("m", tokenizer, len(tokenizer), TASK), "a function of tokenizer and task alone"
    texts = [token.lstrip("Ġ▁") for token in tokenizer.convert_ids_to_tokens(ids)]
    assert texts[:5] == ["a", "b", "c", "d", "e"], "letters first, in their order"
    text = " ".join(texts)
    assert ids in (tokenizer(before + text, add_special_tokens=False).input_ids for before in ("", " "))


def test_after_the_letters_come_words_then_all_there_is(tokenizer):
    words = [text.lstrip("Ġ▁") for text in tokenizer.convert_ids_to_tokens(word_ids(tokenizer, len(tokenizer), 40))]
    assert words[26:29] == ["in", "he", "on"]
    many = word_ids(tokenizer, len(tokenizer), 1000)
    assert len(many) < 1000 and len(many) == len(set(many))
    with pytest.raises(
        ValueError,
        match=rf"m has only {len(many)} words of one token that the model holds, and task 'fixed_offset' needs 502",
    ):
        map_symbols("m", tokenizer, len(tokenizer), build_task({"name": "fixed_offset", "symbols": 500}))


def test_a_tokenizer_without_blanks_is_used_without():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    letters = {letter: i for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    characters = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE(letters, [])))
    assert word_ids(characters, 26, 3) == [0, 1, 2] and characters("abc").input_ids == [0, 1, 2]


def test_the_tasks_own_names_come_first():
    assert map_symbols("m", TASK.build_tokenizer(), 18, TASK) == SymbolMap(list(range(18)), (), "own")
    reordered = build_task({"name": "fixed_offset", "symbols": 20}).build_tokenizer()
    assert map_symbols("m", reordered, 22, TASK).ids[-2:] == [20, 21], "by name, not by number"


def test_without_a_tokenizer_only_a_vocabulary_of_the_same_size_will_do():
    assert map_symbols("m", None, 18, TASK) == SymbolMap(list(range(18)), (), "ids")
    with pytest.raises(ValueError, match="m has no tokenizer, and its vocabulary of 50 tokens is not that of task"):
        map_symbols("m", None, 50, TASK)


def test_what_a_text_begins_with():
    byte_level, metaspace = TOKENIZERS["byte-level"](), TOKENIZERS["metaspace"]()
    assert prefix_ids(byte_level) == (byte_level.bos_token_id,) and prefix_ids(metaspace) == ()
    anchored = build_task({"name": "fixed_offset", "bos": True})
    symbols = map_symbols("m", byte_level, len(byte_level), anchored)
    assert symbols.ids[anchored.bos_token_id] == byte_level.bos_token_id and symbols.prefix == (), "a text begins once"
    symbols = map_symbols("m", byte_level, len(byte_level), TASK)
    assert byte_level.bos_token_id not in symbols.ids and symbols.prefix == (byte_level.bos_token_id,)


def test_lines_end_with_a_newline_where_there_is_one(tokenizer):
    task = FewShot(task=TASK, shots=2)
    ids = map_symbols("m", tokenizer, len(tokenizer), task).ids
    assert tokenizer.convert_ids_to_tokens(ids)[-1] in ("Ċ", "<0x0A>", "\n") and len(set(ids)) == task.vocab_size


def test_only_tokens_that_the_model_holds(tokenizer):
    """A tokenizer may know more words than its model has rows for."""
    size = max(tokenizer.convert_tokens_to_ids(tokenizer.tokenize(" j"))) + 1
    words, all_words = (word_ids(tokenizer, rows, 30) for rows in (size, len(tokenizer)))
    assert len(words) >= 10 and max(words) < size <= max(all_words)


def test_a_model_with_fewer_rows_than_its_tokenizer_has_words(tmp_path):
    tokenizer = TOKENIZERS["metaspace"]()
    folder = saved(llama(60), tmp_path / "m", tokenizer)
    rows, *_ = run_evaluation(str(folder), task={"name": "fixed_offset", "symbols": 8, "test_lengths": [17]}, count=4)
    assert len(rows) == 27 and not any(row["problem"] for row in rows)
    with pytest.raises(ValueError, match="words of one token that the model holds, and task 'fixed_offset' needs 42"):
        run_evaluation(str(folder), task={"name": "fixed_offset", "symbols": 40}, count=4)
    (tmp_path / "corpus.txt").write_text("\n\n".join(f"it is a {word} of no use to an {word}" for word in WORDS * 20))
    text = {"name": "text", "dataset": str(tmp_path / "corpus.txt"), "length": 16, "test_lengths": [16]}
    with pytest.raises(
        ValueError, match=r"m has 60 rows of embeddings, and the text's train split holds token \d+ of the"
    ):
        run_evaluation(str(folder), task=text, count=4)


def test_numbers_with_a_gap(tokenizer):
    """Added words whose numbers leave some out: they are no rows of the model."""
    tokenizer.add_tokens([f"word{i}" for i in range(3)])
    assert max(map_symbols("m", tokenizer, len(tokenizer) - 3, TASK).ids) < len(tokenizer) - 3


def test_a_token_without_a_row_that_there_is_no_choice_of():
    own = build_task({"name": "fixed_offset", "symbols": 20}).build_tokenizer()
    with pytest.raises(ValueError, match=r"m has 18 rows of embeddings, and '\[BOS\]' is token 20 of its tokenizer"):
        map_symbols("m", own, 18, TASK)
    begins = TOKENIZERS["byte-level"]()  # its last token begins a text
    with pytest.raises(ValueError, match=r"rows of embeddings, and '<\|begin\|>' is token 298 of its tokenizer"):
        map_symbols("m", begins, len(begins) - 1, TASK)


def test_words_that_would_be_joined_are_not_symbols():
    """Pieces of words: 't' and 'h' side by side are another token, in a tokenizer that knows no blanks."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    letters = {letter: i for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    pieces = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE(letters | {"th": 26, "ab": 27}, [("t", "h"), ("a", "b")]))
    )
    assert pieces("thab").input_ids == [26, 27]
    words = [pieces.convert_ids_to_tokens(token) for token in word_ids(pieces, 28, 20)]
    assert words[:2] == ["a", "c"] and not {"t", "h"} <= set(words)
    text = [words[i % len(words)] for i in range(400)] + [words[i * 7 % len(words)] for i in range(400)]
    assert pieces("".join(text)).input_ids == pieces.convert_tokens_to_ids(text)
