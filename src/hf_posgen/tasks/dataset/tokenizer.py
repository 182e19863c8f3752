"""Tokenizers of tasks, for `AutoTokenizer` to open: of a task's symbols, and of the user's text."""

from functools import lru_cache

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE, WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from ..text.files import state_of


def symbol_tokenizer(vocabulary: list[str]):
    """Return a tokenizer with one token per symbol, written with spaces between: "3 7 [C] 12". Decoding gives the same text
    back; a word that is no symbol is an error, for no token could mean it. vocabulary: the symbols by token id."""
    from transformers import PreTrainedTokenizerFast  # heavy: only who saves a tokenizer pays

    tokenizer = Tokenizer(WordLevel({name: i for i, name in enumerate(vocabulary)}, unk_token="[UNK]"))  # is no symbol
    tokenizer.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="[BOS]",
        pad_token="[PAD]",
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )


def load_tokenizer(name: str):
    """Open a tokenizer of transformers from a folder or a Hub id; "bytes" is one token per byte of UTF-8, offline. One that
    was opened before is kept while its files are what they were. No code of a repository runs.

    Raises `ValueError` for one that can't be opened, and for one without a vocabulary.
    """
    return byte_tokenizer() if name == "bytes" else _load_tokenizer(name, state_of(name))


@lru_cache(maxsize=4)
def _load_tokenizer(name: str, state: tuple):
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)  # None would ask on the terminal
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(f"the tokenizer {name!r} can't be opened ({reason}); 'bytes' needs no download") from error
    if not set(tokenizer.get_vocab().values()) - set(tokenizer.all_special_ids):
        raise ValueError(f"the tokenizer {name!r} has no vocabulary: train it first, or use 'bytes'")
    return tokenizer


def byte_tokenizer():
    """Return a tokenizer of 256 byte tokens, then the end, the beginning and padding."""
    from transformers import PreTrainedTokenizerFast
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = bytes_to_unicode()
    tokenizer = Tokenizer(BPE({letters[byte]: byte for byte in range(256)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(f"<|{name}|>", special=True) for name in ("eos", "bos", "pad")])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|eos|>",
        bos_token="<|bos|>",
        pad_token="<|pad|>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
