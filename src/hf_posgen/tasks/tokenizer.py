"""A task's tokenizer, for `AutoTokenizer` to open: its symbols, or what made tokens of the user's text."""

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from .token_task import TokenTask


def task_tokenizer(task: TokenTask):
    """One token per symbol, written with spaces between: "3 7 [C] 12". Decoding gives the same text back."""
    if task.natural:
        return task.corpus.tokenizer
    from transformers import PreTrainedTokenizerFast  # heavy: only who saves a tokenizer pays

    vocabulary = {name: i for i, name in enumerate(task.vocabulary)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="[BOS]",
        pad_token="[PAD]",
        unk_token="[PAD]",
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
