"""Factors on the logits (bias included), orthogonal to the encoding.

A scale gives either `factor(queries)`, (B or 1, H or 1, L, 1) or None, known before the logits are; or it `adapts`:
`adapt(logits_BHcM, visible)` returns scaled logits from the rows themselves.
"""

from torch import nn

from .component import build


class LogitScale(nn.Module):
    """No factor at all."""

    adapts = False

    def __init__(self, config):
        super().__init__()
        self.config = config

    def reset_parameters(self) -> None:
        """Draw the parameters."""

    def factor(self, queries):
        return None

    def adapt(self, logits_BHcM, visible):
        return logits_BHcM


LOGIT_SCALES = {"none": LogitScale}


def build_logit_scale(spec, config):
    return build(spec, LOGIT_SCALES, "logit_scale", config)
