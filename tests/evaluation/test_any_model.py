"""Somebody else's models: opened and read through a task's tokens, or refused in one sentence."""

import json
import shutil

import pytest
import torch

from hf_posgen.evaluation.any_model import Translated, open_model
from tests.helpers import tiny_models as tiny


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with one of each kind."""
    folder, tokenizer = tmp_path_factory.mktemp("models"), tiny.byte_level_bpe()
    for make in (tiny.gpt2, tiny.llama, tiny.bloom, tiny.bert, tiny.t5, tiny.headless):
        tiny.saved(make(len(tokenizer)), folder / make.__name__, tokenizer)
    return folder


@pytest.mark.parametrize(
    ("name", "limit", "goes_past", "encoding", "head_size"),
    [("gpt2", 64, False, "learned", 8), ("llama", 64, True, "rope", 16), ("bloom", None, False, "alibi", 8)],
)
def test_what_a_model_says_of_itself(models, name, limit, goes_past, encoding, head_size):
    found = open_model(str(models / name))
    assert (found.limit, found.goes_past, found.encoding, found.head_size) == (limit, goes_past, encoding, head_size)
    assert found.revision is None and not found.model.training and found.tokenizer is not None


def test_scaled_rotations_are_named(tmp_path):
    scaled = tiny.llama(20, rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4})
    assert open_model(str(tiny.saved(scaled, tmp_path))).encoding == "rope_linear"


def test_a_run_of_ours_is_a_model_too(finished_run, tmp_path):
    for file in (*finished_run.glob("*.json"), *finished_run.glob("*.safetensors")):
        shutil.copy(file, tmp_path)
    found = open_model(str(tmp_path))
    assert (found.encoding, found.limit) == ("rope", None)


@pytest.mark.parametrize("name", ["gpt2", "llama", "bloom"])
@pytest.mark.parametrize("prefix", [(), (3, 4)])
@torch.no_grad()
def test_translated_logits_are_the_models_own(models, name, prefix):
    found = open_model(str(models / name))
    ids = [9, 2, 70, 41]
    translated = Translated(found.model, ids, prefix)
    tokens = torch.tensor([[0, 1, 2, 3, 0, 2], [3, 3, 1, 0, 2, 1]])
    theirs = torch.tensor([[*prefix, *(ids[token] for token in row)] for row in tokens.tolist()])
    wanted = found.model(input_ids=theirs).logits[:, [len(prefix) + 1, len(prefix) + 4]][..., ids]
    torch.testing.assert_close(translated(tokens, logits_to_keep=torch.tensor([1, 4])).logits, wanted)
    translated.selects = False  # as of a model that can't select places
    del translated.model
    translated.model = lambda input_ids, attention_mask, use_cache: found.model(input_ids=input_ids)
    torch.testing.assert_close(translated(tokens, logits_to_keep=torch.tensor([1, 4])).logits, wanted)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bert", "reads ahead, as encoders do: only causal language models are evaluated"),
        ("t5", "is a t5, and that is no decoder: only causal language models are evaluated"),
        ("headless", "holds no whole model: it lacks lm_head.weight"),
    ],
)
def test_what_is_no_causal_language_model(models, name, said, capfd):
    with pytest.raises(ValueError, match=said) as raised:
        open_model(str(models / name))
    assert "\n" not in str(raised.value) and capfd.readouterr().err == ""


def test_folders_that_hold_no_model(models, tmp_path):
    with pytest.raises(ValueError, match="is no model: it holds no config.json"):
        open_model(str(tmp_path))
    with pytest.raises(ValueError, match="neither a folder nor the name of a model on the Hub"):
        open_model(str(tmp_path / "nowhere"))
    shutil.copy(models / "llama" / "config.json", tmp_path)
    with pytest.raises(ValueError, match="the weights of .* can't be opened"):
        open_model(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "martian"}))
    with pytest.raises(ValueError, match="of the type 'martian', and this transformers knows no causal language model"):
        open_model(str(tmp_path))


def test_numbers_that_are_none(tmp_path):
    broken = tiny.llama(20)
    torch.nn.init.constant_(broken.lm_head.weight, float("nan"))
    with pytest.raises(ValueError, match="answers with what is no number"):
        open_model(str(tiny.saved(broken, tmp_path)))


def test_code_of_its_own_runs_only_where_that_is_asked_for(tmp_path, monkeypatch):
    tiny.module_cache(monkeypatch, tmp_path / "modules")
    tiny.saved(tiny.llama(20), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    tiny.with_code_of_its_own(tmp_path)
    own = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | own | {"vocab_size": 20}))
    said = r"runs code of its own \(configuration_mine.py, modeling_mine.py\): read it, then allow it with --trust"
    with pytest.raises(ValueError, match=said):
        open_model(str(tmp_path))
    found = open_model(str(tmp_path), trust_remote_code=True)
    assert type(found.model).__name__ == "MineForCausalLM" and found.limit == 64
