"""All that transformers saves of a model and its tokenizer is found again, and nothing else."""

import json

import pytest
import transformers
from tokenizers import Tokenizer, models

from hf_posgen.run.model_files import model_files, tokenizer_files

ANYTHING = ("notes.txt", "state.txt", "run.yaml", ".lock", "tokenizer/old.json", "additional_chat_templates.md")


def with_templates():
    words = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words)
    tokenizer.chat_template = {"default": "{{ messages }}", "tools": "{{ tools }}"}
    return tokenizer


def with_a_vocabulary_file(folder):
    """A tokenizer in plain Python, whose vocabulary is a file of its own."""
    (folder / "vocab.txt").write_text("\n".join(["<s>", "<pad>", "</s>", "<unk>", "a", "b"]), encoding="utf-8")
    return transformers.EsmTokenizer(str(folder / "vocab.txt"))


TOKENIZERS = {
    "chat templates": lambda folder: with_templates(),
    "added tokens": lambda folder: transformers.ByT5Tokenizer(),
    "nothing but a configuration": lambda folder: transformers.CanineTokenizer(),
    "vocabulary of its own": with_a_vocabulary_file,
}


def files(folder):
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_what_a_tokenizer_saves_is_found(name, tmp_path):
    (tmp_path / "source").mkdir()
    tokenizer = TOKENIZERS[name](tmp_path / "source")
    tokenizer.save_pretrained(tmp_path / "saved")
    saved = files(tmp_path / "saved")
    for other in ANYTHING:
        (tmp_path / "saved" / other).parent.mkdir(exist_ok=True)
        (tmp_path / "saved" / other).write_text("not the tokenizer's")
    assert set(tokenizer_files(tmp_path / "saved")) == saved and len(saved) >= 1


def test_the_vocabulary_of_a_tokenizer_with_code_of_its_own_is_found_without_running_it(tmp_path):
    code = 'raise SystemExit("run")\nVOCAB_FILES_NAMES = {"vocab_file": "words.tsv"}\n'
    (tmp_path / "tokenization_own.py").write_text(code)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "OwnTokenizer"}))
    (tmp_path / "words.tsv").write_text("a\n")
    assert {path.name for path in model_files(tmp_path)} == {
        "tokenization_own.py",
        "tokenizer_config.json",
        "words.tsv",
    }


def test_what_a_model_saves_is_found_in_shards_too(tmp_path):
    config = transformers.GPT2Config(n_layer=1, n_embd=16, n_head=1, vocab_size=64, n_positions=16)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path, max_shard_size="4KB")
    saved = files(tmp_path)
    (tmp_path / "optimizer.pt").write_bytes(b"")
    assert set(model_files(tmp_path)) == saved and len(saved) > 4
