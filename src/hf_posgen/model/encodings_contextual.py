"""Encodings whose bias depends on what a query and a key hold."""

import torch
from torch import nn
from transformers import initialization as init

from .attention_bias import Pairwise, Rows
from .component import Base, Size, Spread
from .encodings_absolute import exact_angles, inverse_frequencies
from .encodings_additive import KERPLE
from .position_encoding import Coefficients, PositionEncoding, Tokens


class CoPE(PositionEncoding):
    """Contextual position encoding (Golovneva et al. 2024, equations 2 to 5): a key's position is the number of gates
    σ(q · k) open from it up to the query; q meets the trained vectors of the two whole positions around it,
    interpolated.

    max_position: the largest position told apart. The vectors are shared by the heads of a layer. Unlike the paper,
    whose equations leave it out, q · k in the gate and q · e carry the logits' scaling 1/√K.
    """

    paper = "2405.18719"
    shared = False

    def __init__(self, config, *, max_position: Size = 64, std: Spread = 0.02):
        super().__init__(config)
        self.max_position, self.std = max_position, std
        self.weight = nn.Parameter(torch.empty(max_position, config.head_dim))

    def reset_parameters(self) -> None:
        init.normal_(self.weight, std=self.std)

    @staticmethod
    def positions(logits: torch.Tensor, visible: torch.Tensor, largest: int) -> torch.Tensor:
        """Gates are closed *before* the sum where a key is not visible, or the future would be counted."""
        gates = torch.where(visible, logits.sigmoid(), 0.0)
        return gates.flip(-1).cumsum(-1).flip(-1).clamp(max=largest)

    def bias(self, queries: Tokens, keys: Tokens):
        return Pairwise(self.of, needs_logits=True)

    def of(self, rows: Rows) -> torch.Tensor:
        dtype = rows.logits_BHcM.dtype
        positions = self.positions(rows.logits_BHcM, rows.visible, self.max_position - 1)
        below, above = positions.floor(), positions.ceil()
        at_whole = rows.query_BHcK.to(dtype) @ self.weight.to(dtype).T * rows.scale
        low, high = at_whole.gather(-1, below.long()), at_whole.gather(-1, above.long())
        share = positions - below
        return (1 - share) * low + share * high


class Shaw(PositionEncoding):
    """Relative keys (Shaw et al. 2018, equation 4): q meets a trained vector of the distance, clipped at
    `max_distance`, beside k. The vectors are shared by the heads of a layer. Unlike the paper there are no relative
    values."""

    paper = "1803.02155"
    shared = False

    def __init__(self, config, *, max_distance: Size = 16, std: Spread = 0.02):
        super().__init__(config)
        self.max_distance, self.std = max_distance, std
        self.weight = nn.Parameter(torch.empty(max_distance + 1, config.head_dim))

    def reset_parameters(self) -> None:
        init.normal_(self.weight, std=self.std)

    def bias(self, queries: Tokens, keys: Tokens):
        return Pairwise(self.of)

    def of(self, rows: Rows) -> torch.Tensor:
        dtype = rows.queries.dtype
        at_distance = rows.query_BHcK.to(dtype) @ self.weight.to(dtype).T * rows.scale
        index = rows.distances().clamp(max=self.max_distance)[:, None]
        return at_distance.gather(-1, index.expand(at_distance.shape[0], at_distance.shape[1], -1, -1))


class TransformerXL(PositionEncoding):
    """Transformer-XL's relative encoding (Dai et al. 2019, section 3.3): (q + u) · k + (q + v) · W r(distance), r the
    sinusoidal vector of the distance; u, v and W are trained, per head."""

    paper = "1901.02860"
    shared = False

    def __init__(self, config, *, base: Base = 10000.0, std: Spread = 0.02):
        super().__init__(config)
        self.base, self.std = base, std
        heads, size = config.num_attention_heads, config.head_dim
        self.u = nn.Parameter(torch.empty(heads, size))
        self.v = nn.Parameter(torch.empty(heads, size))
        self.weight = nn.Parameter(torch.empty(heads, size, config.hidden_size))
        if config.hidden_size % 2:
            raise ValueError(f"transformer_xl needs an even hidden_size, not {config.hidden_size}")

    def reset_parameters(self) -> None:
        for parameter in (self.u, self.v, self.weight):
            init.normal_(parameter, std=self.std)

    def query(self, q_BHLK: torch.Tensor, tokens: Tokens) -> torch.Tensor:
        return q_BHLK + self.u[:, None].to(q_BHLK.dtype)

    def bias(self, queries: Tokens, keys: Tokens):
        return Pairwise(self.of)

    def of(self, rows: Rows) -> torch.Tensor:
        dtype, distances = rows.queries.dtype, rows.distances()
        farthest = rows.keys.positions_BL.shape[1] - 1 if rows.keys.sequential else int(distances.max())
        every = torch.arange(farthest + 1, device=distances.device)[None]
        angles = exact_angles(every, inverse_frequencies(self.config.hidden_size, self.base))[0]
        waves = torch.stack([angles.sin(), angles.cos()], -1).flatten(-2).to(dtype)
        relative_HNK = torch.einsum("nd,hkd->hnk", waves, self.weight.to(dtype))
        q = rows.query_BHcK.to(dtype) + (self.v - self.u)[:, None].to(dtype)
        at_distance = q @ relative_HNK.transpose(-1, -2) * rows.scale
        index = distances.clamp(max=farthest)[:, None].expand(q.shape[0], q.shape[1], -1, -1)
        return at_distance.gather(-1, index)


class DAPE(PositionEncoding):
    """Data-adaptive encoding (Zheng et al. 2024, equation 3): a bias by distance (KERPLE's log form) and an MLP over
    the heads that sees each pair's logits and biases and adds to the bias: B + f(logits, B). `width` is the MLP's."""

    paper = "2405.14722"
    shared = False

    def __init__(self, config, *, width: Size = 32):
        super().__init__(config)
        heads = config.num_attention_heads
        self.base = KERPLE(config)
        self.hidden = Coefficients(2 * heads, width)
        self.out = Coefficients(width, heads)

    def bias(self, queries: Tokens, keys: Tokens):
        base = self.base(self.base.bias, queries, keys)
        return Pairwise(lambda rows: self.of(rows, base.dense(rows)), needs_logits=True)

    def of(self, rows: Rows, base: torch.Tensor) -> torch.Tensor:
        dtype = rows.logits_BHcM.dtype
        base = base.expand_as(rows.logits_BHcM)
        x = torch.cat([rows.logits_BHcM, base], 1).permute(0, 2, 3, 1)
        hidden, out = ([p.to(dtype) for p in layer()] for layer in (self.hidden, self.out))
        x = nn.functional.linear(nn.functional.leaky_relu(nn.functional.linear(x, *hidden)), *out)
        return base + x.permute(0, 3, 1, 2)
