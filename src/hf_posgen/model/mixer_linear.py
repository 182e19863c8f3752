"""Mixers whose past is a state of constant size: linear attention and gated linear attention."""

from typing import Literal

import torch
from torch import nn
from torch.nn import functional as F

from .component import Positive, Size
from .encoding_registry import build_encoding
from .encodings_additive import ALiBi
from .encodings_gated import CABLE, ForgettingGate
from .encodings_rotary import XPos

CHUNK = 64  # tokens whose pairs are written out at once
GATED_CHUNK = 16  # so short that the products of its gates stay within float32's range
SMALLEST_LOG_GATE = -80.0 / GATED_CHUNK
SMALLEST_SUM = 1e-6  # of a row's weights, to divide by

# How encodings whose bias is a sum of steps between key and query decay a state: (encoding, x_BLD, tokens, moved_BL)
# to the log of the decay at each token, (B, L, H). By the bias itself: a subclass with another bias inherits nothing.
DECAYS = {
    ALiBi.bias: lambda encoding, x_BLD, tokens, moved_BL: -encoding.slopes_H(tokens) * moved_BL[..., None],
    ForgettingGate.bias: lambda encoding, x_BLD, tokens, moved_BL: encoding.increments(x_BLD),
    CABLE.bias: lambda encoding, x_BLD, tokens, moved_BL: encoding.increments(x_BLD),
    # One rate per channel (B, L, 1, K), of the turned features alone.
    XPos.bias: lambda encoding, x_BLD, tokens, moved_BL: (
        -moved_BL.new_tensor(encoding.channel_decay().rates, dtype=tokens.dtype) * moved_BL[..., None, None]
    ),
}

FEATURES = {"elu1": lambda x: F.elu(x) + 1, "relu": F.relu, "identity": lambda x: x}


class StateMixer(nn.Module):
    """What mixers with a constant state share: projections named as in softmax attention, and an encoding.

    A state has no logits and no weights: a `logit_scale` is refused, `attention_dropout` and `attn_implementation` have
    nothing to act on.
    """

    @staticmethod
    def accepts(encoding: type) -> str | None:
        """Return None, or why an encoding can't act here."""
        if set(encoding.sites()) <= {"embedding"} and not encoding.depends_on_length:
            return None
        return (
            "its own transition says how the past fades, and no query meets a key through which a position could act; "
            "use none, an encoding of the embeddings (learned, sinusoidal), or list encodings per layer"
        )

    def __init__(self, config, layer_idx: int, encoding_spec: dict | None):
        super().__init__()
        self.config, self.layer_idx = config, layer_idx
        scale = config.per_layer("logit_scale")[layer_idx]
        if (scale if isinstance(scale, str) else scale["name"]) != "none":
            raise ValueError(
                f"layer {layer_idx} has no logits that logit_scale {scale!r} could scale: only softmax has; "
                "list logit_scale per layer, with 'none' here"
            )
        self.position_encoding = build_encoding(encoding_spec, config) if encoding_spec is not None else None

    def cached(self, cache, context):
        """This layer's part of the cache, or None, and its states.

        Raises `ValueError` for a prepared mask that hides more than a state can leave out.
        """
        if context.visible.prepared_B1LM is not None and not torch.compiler.is_compiling():
            _refuse_unless_causal(context.visible, context.real_BL)
        layer = None if cache is None else cache.layers[self.layer_idx]
        return layer, {} if layer is None else layer.states


def _refuse_unless_causal(visible, real_BL: torch.Tensor) -> None:
    """`ValueError` unless every real query sees all that the last query sees and that doesn't lie ahead."""
    prepared_BLM = visible.prepared_B1LM[:, 0]
    query = torch.arange(visible.length, device=visible.device)[:, None] + visible.offset
    ahead = torch.arange(prepared_BLM.shape[-1], device=visible.device) > query
    expected = prepared_BLM[:, -1:] & ~ahead
    if bool(((prepared_BLM != expected) & real_BL[..., None]).any()):
        raise ValueError(
            "a prepared 4-D mask that hides more than padding and the future can't act on a state: pass a (B, M) mask, "
            "or position_ids that restart with each document"
        )


class _LinearAttention(StateMixer):
    def __init__(self, config, layer_idx: int, encoding_spec: dict | None):
        super().__init__(config, layer_idx, encoding_spec)
        width = config.num_attention_heads * config.head_dim
        kv_width = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, width, bias=config.attention_bias)
        self.k_proj = nn.Linear(config.hidden_size, kv_width, bias=config.attention_bias)
        self.v_proj = nn.Linear(config.hidden_size, kv_width, bias=config.attention_bias)
        self.o_proj = nn.Linear(width, config.hidden_size, bias=config.attention_bias)

    def project(self, x_BLD: torch.Tensor, dtype: torch.dtype) -> list[torch.Tensor]:
        """Queries, keys and values (B, H, L, K), grouped ones repeated."""
        return [self.heads(project(x_BLD), dtype) for project in (self.q_proj, self.k_proj, self.v_proj)]

    def heads(self, x_BLE: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        x_BHLK = x_BLE.unflatten(-1, (-1, self.config.head_dim)).transpose(1, 2).to(dtype)
        return x_BHLK.repeat_interleave(self.config.num_attention_heads // x_BHLK.shape[1], dim=1)


class LinearAttention(_LinearAttention):
    """Causal linear attention (Katharopoulos et al. 2020, 2006.16236, equations 8 to 12): the weight of a key is the
    product of features φ(q) · φ(k), so that the past is one sum of outer products.

    feature_map: "elu1" (elu(x) + 1, the paper's), "relu" or "identity".
    normalized: divide by the sum of the weights; otherwise multiply by 1/√K (reconstructed).

    Encodings that turn queries and keys turn the *features*, in the numerator alone: the denominator is the sum of the
    unturned φ(q) · φ(k), which keeps its sign (Su et al. 2021, 2104.09864, section 3.3, equation 19). A bias that is a
    sum of steps between key and query multiplies both by exp(bias): ALiBi's is a decay exp(-slope · distance). Where the
    sum of the weights is below 1e-6 (relu: all features 0) that is divided by (reconstructed).
    """

    @staticmethod
    def accepts(encoding: type) -> str | None:
        if encoding.depends_on_length:
            return (
                "it turns every earlier key anew as the document grows, and a sum of keys can't be turned; "
                "use softmax, or an encoding that leaves earlier keys alone (rope, alibi)"
            )
        if "logits" in encoding.sites() and encoding.bias not in DECAYS:
            return (
                "its bias between two tokens is no sum of steps from key to query, so no state of constant size can "
                "decay by it; use softmax, or an encoding with a linear-time form (rope, xpos, alibi, forgetting_gate)"
            )
        return None

    def __init__(
        self,
        config,
        layer_idx: int,
        encoding_spec: dict | None,
        *,
        feature_map: Literal["elu1", "relu", "identity"] = "elu1",
        normalized: bool = True,
    ):
        super().__init__(config, layer_idx, encoding_spec)
        if normalized and feature_map == "identity":
            raise ValueError(
                "feature_map 'identity' gives weights of either sign, whose sum may vanish: set normalized to false, or "
                "use elu1 or relu"
            )
        self.features, self.normalized = FEATURES[feature_map], normalized

    def forward(self, hidden_states, *tables, context, cache=None):
        """(B, L, D) to (B, L, D), and None for the weights. `context` is the pass's `Context`."""
        encoding = context.encoding
        if encoding is None:
            encoding = self.position_encoding
            tables = encoding(encoding.tables, context.queries, context.keys)
        return encoding(self.attend, hidden_states, tables, context, cache), None

    def attend(self, hidden_states, tables, context, cache) -> torch.Tensor:
        """Project, encode, sum up and project back, while the encoding's weights are in place."""
        encoding = self.position_encoding if context.encoding is None else context.encoding
        layer, past = self.cached(cache, context)
        tokens, _ = context.with_hidden(hidden_states, encoding, layer)
        q, k, v = self.project(hidden_states, tokens.dtype)
        q, k = self.features(q), self.features(k)
        log_decay, states = self.decay(hidden_states, encoding, context, past)
        by_channel = log_decay is not None and log_decay.shape[-1] > 1
        turned_q, turned_k = encoding.query(q, tokens, *tables), encoding.key(k, tokens, *tables)
        v = encoding.value(v, tokens, *tables)
        if context.real_BL is not None:
            k, turned_k = (t * context.real_BL[:, None, :, None] for t in (k, turned_k))
        chunk = min(CHUNK, encoding.channel_decay().rows_together(tokens) or 1) if by_channel else CHUNK
        out, states["sum"] = decayed_sums(
            turned_q, turned_k, v, past.get("sum"), log_decay, context.documents_BL, chunk
        )
        if self.normalized:
            ones, of_weights = torch.ones_like(v[..., :1]), None if by_channel else log_decay
            total, states["total"] = decayed_sums(
                q, k, ones, past.get("total"), of_weights, context.documents_BL, CHUNK
            )
            out = out / total.clamp(min=SMALLEST_SUM)
        else:
            out = out * self.config.head_dim**-0.5
        if layer is not None:
            layer.advance(hidden_states.shape[1], states)
        out = encoding.output(out, tokens, *tables)
        return self.o_proj(out.transpose(1, 2).flatten(-2).to(hidden_states.dtype))

    def decay(self, x_BLD, encoding, context, past: dict) -> tuple[torch.Tensor | None, dict]:
        """Return the log of each token's decay, (B, H, L, 1) or (B, 1, L, K) or None, and the position that the next token
        decays from."""
        steps = DECAYS.get(type(encoding).bias)
        if steps is None:
            return None, {}
        positions_BL = context.queries.positions_BL.expand(x_BLD.shape[:2])
        moved_BL, last_B1 = moved(positions_BL, context.real_BL, past.get("position"))
        log_decay = steps(encoding, x_BLD, context.queries, moved_BL).to(context.queries.dtype)
        log_decay = log_decay[..., None] if log_decay.ndim == 3 else log_decay  # (B, L, H or 1, 1 or K)
        if context.real_BL is not None:
            log_decay = log_decay * context.real_BL[..., None, None]
        return log_decay.transpose(1, 2), {"position": last_B1}


class GatedLinearAttention(_LinearAttention):
    """Gated linear attention (Yang et al. 2023, 2312.06635, section 4): a state S_t = diag(α_t) S_{t-1} + k_t v_tᵀ, read
    by q_t, whose gates α = σ(W₂ W₁ x + b)^(1 / temperature) depend on the token.

    rank: of the gates' projection W₂ W₁. temperature: larger forgets less. output_gate: multiply each head's normalised
    output by swish(W x), as the paper does.
    Unlike the paper keys are as wide as values, and a gate is at least e⁻⁵ (which temperature 16 never meets), so that
    a chunk of 16 tokens can be computed as products of matrices.
    """

    def __init__(
        self,
        config,
        layer_idx: int,
        encoding_spec: dict | None,
        *,
        rank: Size = 16,
        temperature: Positive = 16.0,
        output_gate: bool = True,
    ):
        super().__init__(config, layer_idx, encoding_spec)
        width = config.num_attention_heads * config.head_dim
        self.temperature = temperature
        self.gate_down = nn.Linear(config.hidden_size, rank, bias=False)
        self.gate_up = nn.Linear(rank, width)
        self.o_norm = nn.LayerNorm(config.head_dim, eps=config.norm_eps)
        self.g_proj = nn.Linear(config.hidden_size, width) if output_gate else None

    def forward(self, hidden_states, *tables, context, cache=None):
        """(B, L, D) to (B, L, D), and None for the weights."""
        layer, past = self.cached(cache, context)
        dtype = context.queries.dtype
        q, k, v = self.project(hidden_states, dtype)
        log_gate = F.logsigmoid(self.heads(self.gate_up(self.gate_down(hidden_states)), dtype)) / self.temperature
        log_gate = log_gate.clamp(min=SMALLEST_LOG_GATE)
        if context.real_BL is not None:
            real = context.real_BL[:, None, :, None]
            k, log_gate = k * real, log_gate * real
        q = q * self.config.head_dim**-0.5
        out, state = decayed_sums(q, k, v, past.get("sum"), log_gate, context.documents_BL, GATED_CHUNK)
        if layer is not None:
            layer.advance(hidden_states.shape[1], {"sum": state})
        out = self.o_norm(out.to(hidden_states.dtype)).transpose(1, 2).flatten(-2)
        return self.o_proj(out if self.g_proj is None else out * F.silu(self.g_proj(hidden_states))), None


def moved(positions_BL: torch.Tensor, real_BL: torch.Tensor | None, before_B1: torch.Tensor | None):
    """(B, L): how many positions each token stands beyond the real one before it, 0 for padding and where positions
    restart; and the last real token's position (B, 1)."""
    before_B1 = torch.zeros_like(positions_BL[:, :1]) if before_B1 is None else before_B1
    if real_BL is not None:
        slots = torch.arange(positions_BL.shape[1], device=positions_BL.device)
        last = torch.where(real_BL.expand_as(positions_BL), slots, -1).cummax(1).values
        held = positions_BL.gather(1, last.clamp(min=0))
        positions_BL = torch.where(last >= 0, held, before_B1)
    earlier = torch.cat([before_B1, positions_BL[:, :-1]], 1)
    return (positions_BL - earlier).clamp(min=0), positions_BL[:, -1:]


def decayed_sums(q, k, v, state, log_decay, documents_BL, chunk: int) -> tuple[torch.Tensor, torch.Tensor]:
    """o_i = q_iᵀ S_i with S_i = diag(exp(log_decay_i)) S_{i-1} + k_i v_iᵀ, all L at once in chunks; S starts from `state`
    (B, H, K, V; None: zero) and anew in each document. Returns o (B, H, L, V) and the last S.

    log_decay: ≤ 0; (B, H, L, 1), (B, H, L, K), or None. Inside a chunk pairs are written out (dual form); from chunk to
    chunk only S goes on (Yang et al. 2023, section 4.3). Autocast is off: sums need all of their digits.
    """
    length = q.shape[2]
    chunk = min(chunk, length)
    log_decay = q.new_zeros(1, 1, length, 1) if log_decay is None else log_decay
    state = q.new_zeros(*q.shape[:2], k.shape[-1], v.shape[-1]) if state is None else state
    q, k, v, steps = (F.pad(t, (0, 0, 0, -length % chunk)).unflatten(2, (-1, chunk)) for t in (q, k, v, log_decay))
    same, entered, kept, left = _document_masks(documents_BL, length, chunk, q.device)
    with torch.autocast(q.device.type, enabled=False):
        sums = steps.cumsum(-2)  # (B, H, N, c, 1 or K)
        last = sums[..., -1:, :]
        out = _pairs(q, k, sums, last, same) @ v
        added = (k * (last - sums).exp() * kept).transpose(-1, -2) @ v
        fade = last.exp().transpose(-1, -2) * left
        states = []
        for n in range(added.shape[2]):
            states.append(state)
            state = fade[:, :, n] * state + added[:, :, n]
        out = out + (q * sums.exp() * entered) @ torch.stack(states, 2)
    return out.flatten(2, 3)[:, :, :length], state


def _pairs(q, k, sums, last, same) -> torch.Tensor:
    """(B, H, N, c, c): q_i · k_j decayed by the steps after j up to i; 0 where j is later or of another document."""
    if sums.shape[-1] == 1:
        decay = torch.where(same, sums - sums.transpose(-1, -2), float("-inf")).exp()
        return q @ k.transpose(-1, -2) * decay
    middle, first = last / 2, sums[..., :1, :]  # halves the largest exponent
    middle = torch.where(first < middle, (first + last) / 2, middle)  # a leap into the chunk parts none of its pairs
    return torch.where(same, (q * (sums - middle).exp()) @ (k * (middle - sums).exp()).transpose(-1, -2), 0.0)


def _document_masks(documents_BL, length: int, chunk: int, device):
    """Which pairs of a chunk see each other (.., N, c, c); which tokens see the state that enters it, which are kept in
    the one that leaves it (.., N, c, 1); whether the state that enters leaves it again (.., N, 1, 1)."""
    causal = torch.ones(chunk, chunk, dtype=torch.bool, device=device).tril()
    if documents_BL is None:
        return causal, 1, 1, 1
    fill = documents_BL[:, -1:].expand(-1, -length % chunk)
    of = torch.cat([documents_BL, fill], 1).unflatten(1, (-1, chunk))[:, None, ..., None]  # (B, 1, N, c, 1)
    last = of[..., -1:, :]
    before = torch.cat([of[:, :, :1, :1], last[:, :, :-1]], 2)
    return causal & (of == of.transpose(-1, -2)), of == before, of == last, before == last
