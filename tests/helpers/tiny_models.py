"""Somebody else's models, tiny and untrained, with tokenizers of the three common kinds."""

import json
import string
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BloomConfig,
    BloomForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Model,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

WORDS = ["in", "he", "on", "at", "it", "is", "or", "an", "ed", "of", "to", "as", "be", "we", "by", "no"]


def byte_level_bpe() -> PreTrainedTokenizerFast:
    """As GPT-2's and Llama 3's: a blank belongs to the word after it; a beginning token is put before a text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", letter) for letter in string.ascii_lowercase] + [(f"Ġ{word[0]}", word[1]) for word in WORDS]
    vocabulary = {token: i for i, token in enumerate([*alphabet, *(a + b for a, b in merges)])}
    tokenizer = Tokenizer(models.BPE(vocabulary | {"<|begin|>": len(vocabulary)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing("<|begin|> $A", None, [("<|begin|>", len(vocabulary))])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|begin|>")


def metaspace_bpe() -> PreTrainedTokenizerFast:
    """As Llama 2's: a blank is put before a text as well; newlines are bytes."""
    letters = list(string.ascii_lowercase)
    merges = [("▁", letter) for letter in letters] + [(f"▁{word[0]}", word[1]) for word in WORDS]
    marks = [":", "|", ".", "?", "*"]
    start = ["<unk>", "<s>", "</s>", "<0x0A>", "▁", *letters, *marks]
    vocabulary = {token: i for i, token in enumerate([*start, *(a + b for a, b in merges)])}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Metaspace()])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def word_level() -> PreTrainedTokenizerFast:
    vocabulary = {word: i for i, word in enumerate(["<pad>", *reversed(string.ascii_lowercase), "\n", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<pad>")


TOKENIZERS = {"byte-level": byte_level_bpe, "metaspace": metaspace_bpe, "words": word_level}


def gpt2(size: int, positions: int = 64) -> GPT2LMHeadModel:
    return _seeded(GPT2LMHeadModel, GPT2Config(n_embd=16, n_layer=1, n_head=2, **_common(size), n_positions=positions))


def headless(size: int) -> GPT2Model:
    """Without an output layer of its own: what the embeddings don't tie is missing."""
    config = GPT2Config(n_embd=16, n_layer=1, n_head=2, tie_word_embeddings=False, **_common(size))
    return _seeded(GPT2Model, config)


def llama(size: int, positions: int = 64, **more) -> LlamaForCausalLM:
    shape = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    shape |= {"initializer_range": 0.3, "max_position_embeddings": positions}
    return _seeded(LlamaForCausalLM, LlamaConfig(**shape | _common(size) | more))


def bloom(size: int) -> BloomForCausalLM:
    return _seeded(BloomForCausalLM, BloomConfig(hidden_size=16, n_layer=1, n_head=2, **_common(size)))


def bert(size: int) -> BertForMaskedLM:
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return _seeded(BertForMaskedLM, BertConfig(vocab_size=size, **shape))


def t5(size: int) -> T5ForConditionalGeneration:
    shape = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    return _seeded(T5ForConditionalGeneration, T5Config(vocab_size=size, decoder_start_token_id=0, **shape))


def module_cache(monkeypatch, folder) -> None:
    """Let code that comes with models be copied to a folder of this test alone: other tests' folders leave Python's path,
    and what was imported from them is forgotten."""
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(folder))
    monkeypatch.setattr(
        sys, "path", [entry for entry in sys.path if not (Path(entry) / "transformers_modules").is_dir()]
    )
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers_modules"]:
        monkeypatch.delitem(sys.modules, name)


def with_code_of_its_own(folder) -> None:
    """A folder that can be opened with its own Python only."""
    files = {"AutoConfig": "configuration_mine.MineConfig", "AutoModelForCausalLM": "modeling_mine.MineForCausalLM"}
    (folder / "config.json").write_text(json.dumps({"model_type": "mine", "auto_map": files, "vocab_size": 19}))
    (folder / "configuration_mine.py").write_text(
        "from transformers import LlamaConfig\n\n\nclass MineConfig(LlamaConfig):\n    model_type = 'mine'\n"
    )
    (folder / "modeling_mine.py").write_text(
        "from transformers import LlamaForCausalLM\n\nfrom .configuration_mine import MineConfig\n\n\n"
        "class MineForCausalLM(LlamaForCausalLM):\n    config_class = MineConfig\n"
    )


def _common(size: int) -> dict:
    return {"vocab_size": size, "bos_token_id": None, "eos_token_id": None}


def _seeded(cls, config):
    torch.manual_seed(0)
    return cls(config).eval()


def saved(model, folder, tokenizer=None):
    """The folder, with the model in it."""
    model.save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    return folder
