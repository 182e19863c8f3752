"""A linear recurrence: the mixer of the recurrent studies."""

import math
from typing import Annotated, Literal

import torch
from torch import nn
from transformers import initialization as init

from .component import Bounds, Size
from .mixer_linear import StateMixer


class Recurrence(StateMixer):
    """h_t = A h_{t-1} + B x_t, y_t = C h_t, from h = 0 (Cohen-Karlik et al. 2022, 2202.04302, section 3). B is `v_proj`,
    C is `o_proj`.

    kind: "diagonal" (A is one real number per neuron) or "dense" (any matrix).
    state_size: neurons in h (None: `hidden_size`).
    radius: A's spectral radius at the start: a random orthogonal matrix times it, or numbers uniform in ± it
        (reconstructed). A is free afterwards: where training lets its radius grow beyond 1, longer inputs explode, and
        that is part of what is measured.
    """

    def __init__(
        self,
        config,
        layer_idx: int,
        encoding_spec: dict | None,
        *,
        kind: Literal["diagonal", "dense"] = "diagonal",
        state_size: Size | None = None,
        radius: Annotated[float, Bounds(above=0, most=100)] = 0.9,
    ):
        super().__init__(config, layer_idx, encoding_spec)
        size = config.hidden_size if state_size is None else state_size
        self.radius = radius
        self.A = nn.Parameter(torch.empty((size,) if kind == "diagonal" else (size, size)))
        self.v_proj = nn.Linear(config.hidden_size, size, bias=False)
        self.o_proj = nn.Linear(size, config.hidden_size, bias=False)

    def reset_parameters(self) -> None:
        if self.A.ndim == 1:
            init.uniform_(self.A, -self.radius, self.radius)
        else:
            init.orthogonal_(self.A, gain=self.radius)

    def forward(self, hidden_states, *tables, context, cache=None):
        """(B, L, D) to (B, L, D), and None for the weights."""
        layer, past = self.cached(cache, context)
        dtype = context.queries.dtype
        inputs_BLN, A = self.v_proj(hidden_states).to(dtype), self.A.to(dtype)
        transition = A if A.ndim == 1 else A.mT
        with torch.autocast(inputs_BLN.device.type, enabled=False):
            h_BLN, last_BN = recur(inputs_BLN, transition, past.get("h"), context.real_BL, context.documents_BL)
        if layer is not None:
            layer.advance(hidden_states.shape[1], {"h": last_BN})
        return self.o_proj(h_BLN.to(hidden_states.dtype)), None


def recur(u_BLN, transition, before_BN, real_BL, documents_BL) -> tuple[torch.Tensor, torch.Tensor]:
    """h_t = h_{t-1} · transition + u_t over the real tokens; h starts from `before_BN` (None: 0) and anew in each
    document. transition: (N,) or, for row vectors, (N, N). Returns all h and the last real token's.

    Padding takes no time: real tokens are moved together first, and back afterwards.
    """
    if real_BL is not None:
        real_BL = real_BL.expand(u_BLN.shape[:2])
        order = (~real_BL).long().sort(dim=1, stable=True).indices
        u_BLN = _take(u_BLN * real_BL[..., None], order)
        documents_BL = None if documents_BL is None else documents_BL.expand_as(real_BL).gather(1, order)
    if before_BN is not None:
        first = u_BLN[:, :1] + _step(before_BN[:, None], transition)
        u_BLN = torch.cat([first, u_BLN[:, 1:]], 1)
    h_BLN = _scan(u_BLN, transition, documents_BL)
    if real_BL is None:
        return h_BLN, h_BLN[:, -1]
    count_B = real_BL.sum(1)
    last_BN = _take(h_BLN, (count_B - 1).clamp(min=0)[:, None])[:, 0]
    nothing = torch.zeros_like(last_BN) if before_BN is None else before_BN
    return _take(h_BLN, order.argsort(1)), torch.where(count_B[:, None] > 0, last_BN, nothing)


def _scan(h_BLN: torch.Tensor, transition: torch.Tensor, documents_BL) -> torch.Tensor:
    """By doubling: after each round h_t holds the last `reach` inputs, decayed; log₂ L rounds."""
    length, reach = h_BLN.shape[1], 1
    for _ in range(math.ceil(math.log2(length))):
        earlier = _step(h_BLN[:, :-reach], transition)
        if documents_BL is not None:
            same = documents_BL[:, reach:] == documents_BL[:, :-reach]
            earlier = torch.where(same[..., None], earlier, 0.0)
        h_BLN = torch.cat([h_BLN[:, :reach], h_BLN[:, reach:] + earlier], 1)
        transition, reach = _step(transition, transition), 2 * reach
    return h_BLN


def _step(h: torch.Tensor, transition: torch.Tensor) -> torch.Tensor:
    return h * transition if transition.ndim == 1 else h @ transition


def _take(x_BLN: torch.Tensor, index_BL: torch.Tensor) -> torch.Tensor:
    return x_BLN.gather(1, index_BL[..., None].expand(-1, -1, x_BLN.shape[-1]))
