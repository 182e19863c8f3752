"""Encodings whose bias depends on the content too."""

import torch
from torch import nn
from transformers import initialization as init

from .attention_bias import Pairwise, Rows, between_sums
from .position_encoding import PositionEncoding, Tokens


class ForgettingGate(PositionEncoding):
    """The forgetting transformer's bias (Lin et al. 2025, equation 4): Σ log f over the tokens after the key up to the
    query, f = σ(w · x + b) per head. `bias_init` is b at the start (in nats of the logit; large: forget little).
    """

    paper = "2503.02130"
    shared = False

    def __init__(self, config, *, bias_init: float = 2.0):
        super().__init__(config)
        self.bias_init = bias_init
        self.gate = nn.Linear(config.hidden_size, config.num_attention_heads)

    def reset_parameters(self) -> None:
        init.constant_(self.gate.bias, self.bias_init)

    def increments(self, x_BLD: torch.Tensor) -> torch.Tensor:
        return nn.functional.logsigmoid(self.gate(x_BLD).to(torch.promote_types(x_BLD.dtype, torch.float32)))

    def bias(self, queries: Tokens, keys: Tokens):
        return between_sums(queries, keys)


class CoPE(PositionEncoding):
    """Contextual position encoding (Golovneva et al. 2024, equations 2 to 5): a key's position is the number of gates
    σ(q · k) open from it up to the query; q meets the trained vectors of the two whole positions around it, interpolated.

    max_position: the largest position told apart. The vectors are shared by the heads of a layer. Unlike the paper,
    whose equations leave it out, q · k in the gate and q · e carry the logits' scaling 1/√K.
    """

    paper = "2405.18719"
    shared = False

    def __init__(self, config, *, max_position: int = 64, std: float = 0.02):
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
