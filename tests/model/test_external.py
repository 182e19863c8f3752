"""Someone else's encoding: registered at run time, saved with its file, opened with transformers alone."""

import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest
import torch

from hf_posgen.model.encoding_registry import ENCODINGS

from .helpers import tiny, tokens

SOURCE = '''
"""An encoding of a third party."""

import torch

from hf_posgen import PositionEncoding, register
from hf_posgen.model.attention_bias import ByDistance


class Recency(PositionEncoding):
    """Adds -rate log(1 + distance) to every head, its rate trained."""

    def __init__(self, config, *, rate: float = 1.0):
        super().__init__(config)
        self.rate = torch.nn.Parameter(torch.tensor(rate))

    def bias(self, queries, keys):
        heads = self.config.num_attention_heads
        return ByDistance(lambda d: (-self.rate * d.to(queries.dtype).log1p()).expand(heads, *d.shape))


register("recency", Recency)
'''


@pytest.fixture
def recency(tmp_path):
    def load(source=SOURCE):
        file = tmp_path / "their_encoding.py"
        file.write_text(source)
        spec = importlib.util.spec_from_file_location("their_encoding", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules["their_encoding"] = module
        spec.loader.exec_module(module)
        return module

    yield load
    ENCODINGS.pop("recency", None)
    sys.modules.pop("their_encoding", None)


def test_it_opens_elsewhere_with_transformers_alone(recency, tmp_path):
    recency()
    model, row = tiny({"name": "recency", "rate": 0.5}), tokens(1, 9)
    folder = tmp_path / "checkpoint"
    model.save_pretrained(folder)
    code = f"""
    import sys
    class Nobody:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("hf_posgen", "their_encoding"):
                raise ImportError(name)
    sys.meta_path.insert(0, Nobody())
    import torch
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained({str(folder)!r}, trust_remote_code=True).eval()
    model.save_pretrained("again")
    again = AutoModelForCausalLM.from_pretrained("again", trust_remote_code=True).eval()
    row = torch.tensor({row.tolist()})
    assert torch.equal(again(row).logits, model(row).logits)
    torch.save(model(row).logits.detach(), "logits.pt")
    """
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert torch.equal(torch.load(tmp_path / "logits.pt"), model(row).logits)


@pytest.mark.parametrize(
    "change, reason",
    [
        (("import torch\n", "import torch\nimport pandas\n"), "imports 'pandas'"),
        (
            (
                "from hf_posgen.model.attention_bias",
                "from hf_posgen.report.markdown import report\nfrom hf_posgen.model.attention_bias",
            ),
            "only PositionEncoding",
        ),
    ],
)
def test_a_file_that_cannot_travel_is_refused(recency, tmp_path, change, reason):
    recency(SOURCE.replace(*change, 1))
    with pytest.raises(ValueError, match=reason):
        tiny("recency").save_pretrained(tmp_path / "checkpoint")
