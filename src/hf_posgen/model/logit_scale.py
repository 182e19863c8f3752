"""Factors on the logits (bias included), orthogonal to the encoding.

A scale gives either `factor(queries)`, (B or 1, H or 1, L, 1) or None, known before the logits are; or it `adapts`:
`adapt(logits_BHcM, visible)` returns scaled logits from the rows themselves.
"""

import torch
from torch import nn
from transformers import initialization as init

from .component import Positive, build


class LogitScale(nn.Module):
    """No factor at all."""

    adapts = False

    def __init__(self, config):
        super().__init__()
        self.config = config

    def reset_parameters(self) -> None:
        """Draw the parameters."""

    def forward(self, queries):
        """Return the factor; called, so that what wraps a module's forward has its weights in place."""
        return self.factor(queries)

    def factor(self, queries):
        return None

    def adapt(self, logits_BHcM, visible):
        return logits_BHcM


class Fixed(LogitScale):
    """One constant factor (an inverse temperature)."""

    def __init__(self, config, *, factor: Positive = 1.0):
        super().__init__(config)
        self.value = factor

    def factor(self, queries):
        return torch.full((1, 1, 1, 1), self.value, dtype=queries.dtype, device=queries.positions_BL.device)


class LogN(LogitScale):
    """Scalable softmax (Nakanishi 2025, 2501.19399): s · log n for a query that sees n tokens of its document, s
    trained per head. It starts at `start` (reconstructed; None: 1 / log `max_position_embeddings`, so that a full
    context is as plain).
    """

    def __init__(self, config, *, start: Positive | None = None):
        super().__init__(config)
        self.start = start
        self.scale = nn.Parameter(torch.empty(config.num_attention_heads))

    def reset_parameters(self) -> None:
        plain = 1 / torch.tensor(max(2, self.config.max_position_embeddings), dtype=torch.float64).log().item()
        init.constant_(self.scale, plain if self.start is None else self.start)

    def factor(self, queries):
        n = (queries.index_BL + 1).to(queries.dtype).log()
        return self.scale.to(queries.dtype)[None, :, None, None] * n[:, None, :, None]


class EntropyAdapted(LogitScale):
    """Adaptive temperature (Veličković et al. 2024, 2410.01104, figure 5): where a row's softmax has an entropy of
    more than 0.5 nats, its logits are multiplied by max(polynomial(entropy), 1). At inference only.
    """

    adapts = True
    polynomial = (-0.037, 0.481, -2.3, 4.917, -1.791)

    def adapt(self, logits_BHcM, visible):
        if self.training:
            return logits_BHcM
        hidden = torch.where(visible, logits_BHcM, float("-inf"))
        weights = hidden.softmax(-1)
        entropy = -(weights * torch.where(weights > 0, weights, 1.0).log()).sum(-1, keepdim=True)
        beta = torch.zeros_like(entropy)
        for coefficient in self.polynomial:
            beta = beta * entropy + coefficient
        return logits_BHcM * torch.where(entropy > 0.5, beta.clamp(min=1), 1.0)


LOGIT_SCALES = {"none": LogitScale, "fixed": Fixed, "log_n": LogN, "entropy": EntropyAdapted}


def build_logit_scale(spec, config):
    return build(spec, LOGIT_SCALES, "logit_scale", config)
