"""Values that others got wrong, and what they must be."""

import math

import pytest
import torch

from hf_posgen.model import attention_kernels
from hf_posgen.model.configuration_posgen import PosGenConfig
from hf_posgen.model.encoding_registry import ENCODINGS
from hf_posgen.model.encodings_absolute import exact_angles, inverse_frequencies
from hf_posgen.model.position_encoding import Tokens

from .helpers import tiny, tokens


def build(name, heads=8, size=8, original=64, **hyperparameters):
    config = PosGenConfig(
        hidden_size=heads * size, num_attention_heads=heads, head_dim=size, max_position_embeddings=original
    )
    encoding = ENCODINGS[name](config, **hyperparameters)
    encoding.reset_parameters()
    return encoding


def at(*positions, length=None):
    p = torch.tensor([positions])
    lengths = None if length is None else torch.full_like(p, length)
    return Tokens(positions_BL=p, index_BL=p, lengths_BL=lengths, dtype=torch.float64)


FREQUENCIES = [
    ("rope", {}, None, [1, 0.1, 0.01, 0.001], 1.0),
    ("rope_linear", {"factor": 4.0}, None, [0.25, 0.025, 0.0025, 0.00025], 1.0),
    ("rope_dynamic_ntk", {"factor": 4.0}, 128, [1, 0.05848035, 0.00341995, 0.0002], 1.0),
    ("rope_dynamic_ntk", {"factor": 4.0}, 64, [1, 0.1, 0.01, 0.001], 1.0),
    ("rope_yarn", {"factor": 4.0}, None, [1, 0.0625, 0.0025, 0.00025], 1.138629),
    ("rope_yarn", {"factor": 4.0, "attention_factor": 1.0}, None, [1, 0.0625, 0.0025, 0.00025], 1.0),
    ("rope_llama3", {"factor": 4.0}, None, [1, 0.02546479, 0.0025, 0.00025], 1.0),
    ("rope_longrope", {"long_factor": [1.0, 2.0, 3.0, 4.0]}, 65, [1, 0.05, 0.00333333, 0.00025], 1.154701),
    ("rope_longrope", {"long_factor": [1.0, 2.0, 3.0, 4.0]}, 64, [1, 0.1, 0.01, 0.001], 1.154701),
    ("rope", {"p": 0.5}, None, [1, 0.1, 0, 0], 1.0),
]


@pytest.mark.parametrize("name, hyperparameters, length, expected, amplitude", FREQUENCIES)
def test_rope_frequencies(name, hyperparameters, length, expected, amplitude):
    encoding = build(name, **hyperparameters)
    angles = encoding.angles(at(1, length=length or 1))[0, 0]
    torch.testing.assert_close(angles, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=5e-9)
    assert abs(encoding.amplitude - amplitude) < 5e-7


def test_rope_scores_of_one_pair():
    encoding = build("rope", heads=1, size=2)
    x = torch.tensor([[[[1.0, 0.0]]]], dtype=torch.float64)
    for distance, expected in ((1, 0.540302), (2, -0.416147)):
        q = encoding.query(x, at(distance), *encoding.tables(at(distance), at(distance)))
        k = encoding.key(x, at(0), *encoding.tables(at(0), at(0)))
        assert abs(float((q * k).sum()) - expected) < 1e-6


SLOPES = {
    1: [0.00390625],
    2: [0.0625, 0.00390625],
    4: [0.25, 0.0625, 0.015625, 0.00390625],
    6: [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125],
    8: [2.0**-n for n in range(1, 9)],
    12: [2.0**-n for n in range(1, 9)] + [0.70710678, 0.35355339, 0.1767767, 0.08838835],
}


@pytest.mark.parametrize("heads", SLOPES)
def test_alibi_slopes(heads):
    slopes = build("alibi", heads=heads).slopes_H(at(0))
    torch.testing.assert_close(slopes, torch.tensor(SLOPES[heads], dtype=torch.float64), rtol=0, atol=1e-8)
    learned = build("alibi", heads=heads, slopes="learned").slopes_H(at(0))
    torch.testing.assert_close(learned.double(), slopes, rtol=1e-6, atol=0)


def test_alibi_bias_is_exact_and_comes_after_the_scaling():
    alibi = build("alibi")
    bias = alibi.bias(at(1), at(0), *alibi.tables(at(1), at(0))).dense(None)
    assert float(bias[0, 0, 0, 0]) == -0.5


def test_t5_buckets():
    table = {0: 0, 1: 1, 15: 15, 16: 16, 18: 16, 20: 17, 23: 18, 26: 19, 30: 20, 32: 21, 46: 24, 63: 26, 64: 26}
    table |= {90: 29, 112: 30, 113: 31, 127: 31, 1000: 31}
    buckets = build("t5").bucket(torch.tensor(list(table)))
    assert buckets.tolist() == list(table.values())


def test_kerple():
    def bias(encoding, distance):
        return float(encoding.bias(at(0), at(0)).at(torch.tensor(distance))[0].detach())

    log, power = build("kerple"), build("kerple", form="power", r2=0.5)
    assert bias(log, 3) == pytest.approx(-1.386294, abs=1e-6) and bias(log, 1000) == pytest.approx(-6.908755, abs=1e-6)
    assert bias(power, 10) == pytest.approx(-3.162278, abs=1e-6)


def test_fire_argument():
    fire = build("fire", c=0.1, threshold=256.0)
    for position, distance, expected in ((100, 50, 0.546116), (100, 100, 0.730863), (1000, 1000, 1.0)):
        value = fire.argument(torch.tensor(distance), torch.tensor(position), torch.float64)
        assert float(value.detach()) == pytest.approx(expected, abs=1e-6)


def test_sandwich():
    config = PosGenConfig(hidden_size=8, num_attention_heads=1)
    sandwich = ENCODINGS["sandwich"](config, size=4)
    for distance, expected in ((0, 2.0), (1, 1.540252), (3, 0.009558)):
        bias = float(sandwich.bias(at(distance), at(0)).at(torch.tensor(distance))) * math.sqrt(8)
        assert bias == pytest.approx(expected, abs=1e-6)


def test_cope_positions_do_not_see_the_future():
    rows = torch.tensor([[0.0, 9.0, 9.0], [0.0, 1.0, 9.0], [0.0, 1.0, -1.0]], dtype=torch.float64)
    visible = torch.ones(3, 3, dtype=torch.bool).tril()
    positions = ENCODINGS["cope"].positions(rows, visible, 63)
    expected = [[0.5], [1.231059, 0.731059], [1.5, 1.0, 0.268941]]
    for row, values in zip(positions.tolist(), expected, strict=True):
        assert row[: len(values)] == pytest.approx(values, abs=1e-6)
    changed = torch.where(visible, rows, -5.0)
    assert torch.equal(ENCODINGS["cope"].positions(changed, visible, 63).tril(), positions.tril())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_phases_at_position_131071_do_not_depend_on_the_models_dtype(dtype):
    model = tiny("rope", dtype, hidden_size=64, num_attention_heads=1, num_key_value_heads=1)
    previous = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        position = Tokens(torch.tensor([[131071]]), torch.tensor([[131071]]))
        cos, sin = model.model.position_encoding.tables(position, position)
    finally:
        torch.set_default_dtype(previous)
    angles = 131071 * torch.tensor([10000.0 ** (-2 * f / 64) for f in range(32)], dtype=torch.float64)
    assert (cos[0, 0, 0].double() - angles.cos()).abs().max() < 1e-6
    assert (sin[0, 0, 0].double() - angles.sin()).abs().max() < 1e-6


def test_exact_angles_in_float64():
    angles = exact_angles(torch.tensor([[10**6]]), inverse_frequencies(4, 10000.0))
    assert angles.dtype == torch.float64 and float(angles[0, 0, 1]) == pytest.approx(10**4, abs=1e-8)


BIASES = ["alibi", "sandwich", "t5", "forgetting_gate", "cable", "grape"]


@pytest.mark.parametrize("name", BIASES)
@pytest.mark.parametrize("length", [512, 2048, 4096, pytest.param(16384, marks=pytest.mark.slow)])
@torch.no_grad()
def test_bfloat16_attention_is_within_a_hundredth_of_float64(name, length):
    """The bias is never computed in half precision: against float64 attention over the same bfloat16 inputs."""
    heads, size = 8, 32
    encoding = build(name, heads=heads, size=size)
    torch.manual_seed(0)
    for parameter in encoding.parameters():
        parameter.copy_(torch.randn_like(parameter) * 0.1)
    encoding.reset_parameters()
    q, k, v = (torch.randn(1, heads, length, size, dtype=torch.bfloat16) for _ in range(3))
    x = torch.randn(1, length, heads * size)
    index = torch.arange(length)[None]

    def run(dtype, rows):
        from dataclasses import replace

        from hf_posgen.model.attention_mask import Visible
        from hf_posgen.model.logit_scale import LogitScale

        work = torch.promote_types(dtype, torch.float32)
        whole = Tokens(index, index, sequential=True, dtype=work, hidden_BLD=x)
        steps = encoding.increments(x)
        if steps is not None:
            whole = replace(whole, sums_BLS=steps.to(work).cumsum(1))
        start = length - rows
        queries = whole.rows(start, length)
        return attention_kernels.attend(
            q[:, :, start:].to(dtype),
            k.to(dtype),
            v.to(dtype),
            queries=queries,
            keys=whole,
            visible=Visible(rows, length, start, q.device),
            bias=encoding.bias(
                queries.with_vectors(q[:, :, start:]), whole.with_vectors(k), *encoding.tables(queries, whole)
            ),
            scale=size**-0.5,
            logit_scale=LogitScale(None),
            implementation="sdpa" if dtype == torch.bfloat16 else "eager",
        )[0]

    rows = 64
    exact = run(torch.float64, rows)
    rounding = exact.abs() * 2**-9  # of the result itself: half a unit in bfloat16's last place
    assert ((run(torch.bfloat16, rows).double() - exact).abs() - rounding).max() <= 0.01


@torch.no_grad()
def test_no_length_by_length_tensor_outside_eager():
    """Not one tensor as large as heads × length × length is made by columns or by-distance biases."""
    from torch.utils._python_dispatch import TorchDispatchMode

    length = 2048

    class Largest(TorchDispatchMode):
        elements = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            for tensor in out if isinstance(out, tuple | list) else [out]:
                if isinstance(tensor, torch.Tensor) and not tensor._is_view():
                    self.elements = max(self.elements, tensor.untyped_storage().nbytes() // 4)
            return out

    for name in ("none", "rope", "alibi", "t5", "kerple", "clipped", "fire", "forgetting_gate", "cope"):
        model = tiny(name, hidden_size=64, num_attention_heads=8, num_key_value_heads=8, max_position_embeddings=2048)
        row = tokens(1, length)
        with Largest() as largest:
            model(row, use_cache=False)
        limit = max(attention_kernels.CHUNK_ELEMENTS * 2, 8 * length * 64 * 4)
        assert largest.elements <= limit, f"{name}: a tensor of {largest.elements} elements"


def test_learned_positions_past_the_table():
    model = tiny("learned", max_position_embeddings=8)
    with pytest.raises(ValueError, match="position 8 is past the learned table of 8 rows.*clamp.*wrap"):
        model(tokens(1, 9))
    for policy in ("clamp", "wrap"):
        lenient = tiny("learned", max_position_embeddings=8, out_of_range=policy)
        assert torch.isfinite(lenient(tokens(1, 20)).logits).all()


def test_masked_logits_stay_finite_in_half_precision():
    model = tiny("alibi", torch.float16)
    rows = torch.zeros(2, 9, dtype=torch.long)
    rows[0, 4:] = tokens(5)
    assert torch.isfinite(model(rows, attention_mask=(rows != 0).long()).logits).all()


@pytest.mark.parametrize("name", ["alibi", "sandwich", "t5", "kerple", "clipped", "rope", "xpos"])
@torch.no_grad()
def test_shifts_to_a_hundred_thousand_change_nothing_in_float32(name):
    hyperparameters = {"scale_base": 1e5} if name == "xpos" else {}
    model, row = tiny({"name": name, **hyperparameters}), tokens(1, 12)
    index = torch.arange(12)[None]
    plain = model(row, positions=index, use_cache=False).logits
    for shift in (100, 10_000, 100_000):
        moved = model(row, positions=index + shift, use_cache=False).logits
        assert (moved - plain).abs().max() <= 1e-5 * plain.abs().max(), f"{name} at {shift}"
