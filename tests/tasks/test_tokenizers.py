"""Tokenizers of tasks: what is no symbol is an error, and opening one runs no code and asks nothing."""

import subprocess
import sys
import textwrap

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from hf_posgen.evaluation.symbols import map_symbols, prefix_ids
from hf_posgen.model.configuration_posgen import PosGenConfig
from hf_posgen.model.modeling_posgen import PosGenForCausalLM
from hf_posgen.run.build import vocabulary
from hf_posgen.tasks import TASKS, build_task, generated_tasks

TOKEN = [name for name in generated_tasks() if not TASKS[name].continuous]


@pytest.mark.parametrize("name", TOKEN)
def test_a_word_that_is_no_symbol_is_an_error(name, tmp_path):
    """It can't become the padding, or any token that means something else."""
    task = build_task(name)
    task.build_tokenizer().save_pretrained(tmp_path)
    for tokenizer in (AutoTokenizer.from_pretrained(tmp_path), PreTrainedTokenizerFast.from_pretrained(tmp_path)):
        assert tokenizer.unk_token is None and len(tokenizer) == task.vocab_size
        assert tokenizer("0 1 [PAD]")["input_ids"] == [0, 1, task.pad_token_id]
        for text in ("0 hello 1", str(task.vocab_size), "[pad]", "0,1"):
            with pytest.raises(Exception, match="WordLevel error: Missing .* token from the vocabulary"):
                tokenizer(text)


def test_a_models_symbols_that_a_task_lacks_are_told_by_name():
    tokenizer = build_task("fixed_offset").build_tokenizer()
    assert prefix_ids(tokenizer) == ()
    too_few = "has only 16 words of one token that the model holds, and task 'fixed_offset' needs"
    with pytest.raises(ValueError, match=too_few):
        map_symbols("m", tokenizer, 18, build_task({"name": "fixed_offset", "symbols": 20}))


@pytest.mark.parametrize("task", ["fixed_offset", "bytes"])
def test_a_repositorys_tokenizer_opens_without_its_code(task, tmp_path):
    """In a process that knows nothing of hf_posgen, with nobody at the terminal: the card's line, as it stands there."""
    from hf_posgen.tasks.dataset.tokenizer import byte_tokenizer

    spec = build_task("fixed_offset")
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    PosGenForCausalLM(PosGenConfig(**shape, **vocabulary(spec))).save_pretrained(tmp_path)
    assert "auto_map" in (tmp_path / "config.json").read_text()
    (byte_tokenizer() if task == "bytes" else spec.build_tokenizer()).save_pretrained(tmp_path)
    code = f"""
    import builtins, sys
    sys.modules["hf_posgen"] = None
    builtins.input = lambda *_: sys.exit("it asks")
    from transformers import AutoTokenizer
    print(AutoTokenizer.from_pretrained({str(tmp_path)!r}, trust_remote_code=False)("3")["input_ids"])
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-1000:]
    assert done.stdout.splitlines()[-1] == ("[51]" if task == "bytes" else "[3]")
