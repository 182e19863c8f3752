"""Checkpoints of every release load under the current code, weight for weight, and give the logits they gave."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

import hf_posgen

from .helpers import tokens

HOME = Path(__file__).parent.parent / "fixtures"
FIXTURES = sorted(path.parent for path in HOME.glob("*/*/config.json"))


def test_this_release_has_fixtures():
    assert (HOME / hf_posgen.__version__).is_dir(), "run: python scripts/make_fixtures.py"


@pytest.mark.parametrize("folder", FIXTURES, ids=lambda f: f"{f.parent.name}-{f.name}")
@torch.no_grad()
def test_loads_as_it_was(folder):
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    saved = load_file(folder / "model.safetensors")
    state = model.state_dict()
    assert set(state) == set(saved)
    assert all(torch.equal(state[name], saved[name]) for name in saved)
    # Another processor may round its matrix products otherwise.
    expected = load_file(folder / "logits.safetensors")["logits"]
    torch.testing.assert_close(model(tokens(1, 10)).logits, expected, rtol=1e-5, atol=1e-5)
