"""Encodings in which each token says how far it moves on, or how fast distance counts: gates of the content."""

from typing import Annotated, Literal

import torch
from torch import nn
from transformers import initialization as init

from .attention_bias import Columns, between_sums, relative
from .component import Base, Bounds, Size, Spread
from .encodings_absolute import inverse_frequencies
from .encodings_additive import paper_slopes
from .encodings_rotary import rotate
from .position_encoding import PositionEncoding, Tokens


class ForgettingGate(PositionEncoding):
    """The forgetting transformer's bias (Lin et al. 2025, equation 4): Σ log f over the tokens after the key up to the
    query, f = σ(w · x + b) per head. `bias_init` is b at the start (in nats of the logit; large: forget little).
    """

    paper = "2503.02130"
    shared = False

    def __init__(self, config, *, bias_init: Annotated[float, Bounds(least=-1e3, most=1e3)] = 2.0):
        super().__init__(config)
        self.bias_init = bias_init
        self.gate = nn.Linear(config.hidden_size, config.num_attention_heads)

    def reset_parameters(self) -> None:
        init.constant_(self.gate.bias, self.bias_init)

    def increments(self, x_BLD: torch.Tensor) -> torch.Tensor:
        return nn.functional.logsigmoid(self.gate(x_BLD).to(torch.promote_types(x_BLD.dtype, torch.float32)))

    def bias(self, queries: Tokens, keys: Tokens):
        return between_sums(queries, keys)


class CABLE(PositionEncoding):
    """Context-aware bias (Veisi et al. 2025; reconstructed): each token adds a positive step softplus(w · x + b) per
    head, and the bias is minus what was added after the key up to the query. `bias_init` is b at the start."""

    paper = "2503.08067"
    shared = False

    def __init__(self, config, *, bias_init: Annotated[float, Bounds(least=-1e3, most=1e3)] = -2.0):
        super().__init__(config)
        self.bias_init = bias_init
        self.step = nn.Linear(config.hidden_size, config.num_attention_heads)

    def reset_parameters(self) -> None:
        init.constant_(self.step.bias, self.bias_init)

    def increments(self, x_BLD: torch.Tensor) -> torch.Tensor:
        return -nn.functional.softplus(self.step(x_BLD).to(torch.promote_types(x_BLD.dtype, torch.float32)))

    def bias(self, queries: Tokens, keys: Tokens):
        return between_sums(queries, keys)


class GRAPE(PositionEncoding):
    """Additive GRAPE with gated slopes (Zhang et al. 2025, section 4, GRAPE-A-QK): -distance · ω · (softplus(v · q / √K)
    + softplus(u · k / √K)); ω > 0 and the vectors v and u are trained per head.

    gates: "both", or "query" or "key" for one of the two terms alone (GRAPE-A-Q, GRAPE-A-K).
    ω starts at ALiBi's slopes, as in the authors' code; v and u at a normal draw of standard deviation `std`
    (reconstructed). Unlike the authors' code v and u are not normalised, nor q and k.
    """

    paper = "2512.07805"
    shared = False

    def __init__(self, config, *, gates: Literal["both", "query", "key"] = "both", std: Spread = 0.02):
        super().__init__(config)
        self.gates, self.std = gates, std
        heads, size = config.num_attention_heads, config.head_dim
        self.log_rate = nn.Parameter(torch.empty(heads))
        self.v = nn.Parameter(torch.empty(heads, size)) if gates != "key" else None
        self.u = nn.Parameter(torch.empty(heads, size)) if gates != "query" else None

    def reset_parameters(self) -> None:
        slopes = torch.tensor(paper_slopes(self.config.num_attention_heads), dtype=torch.float64)
        init.copy_(self.log_rate, slopes.log().to(self.log_rate.dtype))
        for vector in (self.v, self.u):
            if vector is not None:
                init.normal_(vector, std=self.std)

    def gate(self, tokens: Tokens, vector_HK: torch.Tensor) -> torch.Tensor:
        """(B, H, L): how much each token quickens the distance; a key's heads serve a group of queries' heads."""
        x_BGLK = tokens.vectors_BHLK.to(tokens.dtype)
        vector_GRK = vector_HK.to(tokens.dtype).unflatten(0, (x_BGLK.shape[1], -1))
        logits_BGRL = vector_GRK @ x_BGLK.transpose(-1, -2) * self.config.head_dim**-0.5
        # softplus, whose own gradient torch.compile lays out wrongly (2.13)
        return -nn.functional.logsigmoid(-logits_BGRL).flatten(1, 2)

    def bias(self, queries: Tokens, keys: Tokens):
        rate = self.log_rate.to(queries.dtype).exp()[None, :, None]
        by_query = None if self.v is None else relative(rate * self.gate(queries, self.v), queries, keys)
        if self.u is None:
            return by_query
        plain = relative(rate, queries, keys)
        by_key = Columns(plain.query_BHLC, plain.key_BHMC * self.gate(keys, self.u)[..., None])
        return by_key if by_query is None else by_query + by_key


class SelectiveRoPE(PositionEncoding):
    """Selective RoPE (Movahedi et al. 2025, equation 13 and figure 4): channel pair f of a token turns by the running sum
    of steps that the tokens choose, times base^(-2f / K); a step is a causal convolution, `width` tokens wide and each
    pair its own, of W₂ W₁ x / ‖x‖ (radians per token; `rank` is W₁'s).

    Grouped keys share one angle. Pairs are (c, c + half), as in Llama. As in the authors' code W₂ W₁ is of low rank and
    the base fixed; steps start with a standard deviation of about `std`, the convolution at the token alone
    (reconstructed). Unlike the paper's largest variant there is no gate on the steps, no constant step, no activation.
    """

    paper = "2511.17388"
    shared = False

    def __init__(self, config, *, base: Base = 500000.0, rank: Size = 16, width: Size = 4, std: Spread = 1.0):
        super().__init__(config)
        if config.head_dim % 2:
            raise ValueError(f"selective_rope needs an even head_dim, not {config.head_dim}")
        self.base, self.std, self.lags = base, std, width
        pairs = config.num_key_value_heads * config.head_dim // 2
        self.down = nn.Parameter(torch.empty(rank, config.hidden_size))
        self.up = nn.Parameter(torch.empty(pairs, rank))
        self.taps = nn.Parameter(torch.empty(pairs, width))

    def reset_parameters(self) -> None:
        init.normal_(self.down)
        init.normal_(self.up, std=self.std * self.up.shape[1] ** -0.5)
        alone = torch.zeros_like(self.taps)
        alone[:, 0] = 1
        init.copy_(self.taps, alone)

    def increments(self, x_BLD: torch.Tensor) -> torch.Tensor:
        dtype = torch.promote_types(x_BLD.dtype, torch.float32)
        x = nn.functional.normalize(x_BLD.to(dtype), dim=-1)
        return x @ self.down.to(dtype).T @ self.up.to(dtype).T

    def query(self, q_BHLK: torch.Tensor, tokens: Tokens) -> torch.Tensor:
        """Summing first and then convolving is the same, and needs no more of the past than the sums."""
        turned_BLS = (tokens.lagged_BLSN * self.taps.to(tokens.dtype)).sum(-1)
        turned_BGLF = turned_BLS.unflatten(-1, (self.config.num_key_value_heads, -1)).transpose(1, 2)
        frequencies = inverse_frequencies(self.config.head_dim, self.base).to(turned_BGLF)
        angles = (turned_BGLF * frequencies).repeat_interleave(q_BHLK.shape[1] // turned_BGLF.shape[1], dim=1)
        return rotate(q_BHLK, angles.cos(), angles.sin())

    key = query
