"""The contract that every positional encoding implements.

Shape suffixes, here and in all files beside this one: B rows of the batch, L query tokens, M key tokens (those in the
cache and the new ones), H heads, K size of a head, D hidden size, C columns, S running sums.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from .attention_bias import Bias

HOOKS = {
    "embed": "embedding",
    "query": "query",
    "key": "key",
    "bias": "logits",
    "value": "value",
    "output": "output",
    "increments": "running sum",
}


@dataclass(frozen=True)
class Tokens:
    """What an encoding may know about a run of tokens.

    positions_BL: integers, the positions the tokens are said to have (B may be 1 where all rows agree).
    index_BL: integers, each token's index in its document; equal to the positions unless a sampler or the caller set them.
    lengths_BL: how long each token's document is at this step (its largest position + 1), of the row itself, whatever
        its neighbours in the batch; None unless the encoding says `depends_on_length`.
    sequential: the positions are one unbroken count from 0 over the whole row, in every row, known without looking.
    hidden_BLD: the layer's input (keys of earlier steps have none: None there).
    sums_BLS: running sums of the encoding's `increments` up to and including each token, in float32 or better.
    lagged_BLSN: for an encoding with `lags` N, those sums 0..N-1 tokens earlier, 0 before the document; queries only.
    vectors_BHLK: the layer's queries or keys as encoded (keys may have fewer heads); for `bias` only.
    dtype: what to compute in: float32, or float64 in a float64 model.
    """

    positions_BL: torch.Tensor
    index_BL: torch.Tensor
    lengths_BL: torch.Tensor | None = None
    sequential: bool = False
    hidden_BLD: torch.Tensor | None = None
    sums_BLS: torch.Tensor | None = None
    lagged_BLSN: torch.Tensor | None = None
    vectors_BHLK: torch.Tensor | None = None
    dtype: torch.dtype = torch.float32

    def replace(self, **changes) -> "Tokens":
        """Return these tokens with some fields changed, as `dataclasses.replace` does.

        Every layer of every decoded token calls this a few times: 1.8 µs without building the object anew, 6.6 µs with.
        """
        other = object.__new__(Tokens)
        other.__dict__.update(self.__dict__, **changes)
        return other

    def with_vectors(self, vectors_BHLK: torch.Tensor) -> "Tokens":
        """Return these tokens with their queries or keys, as `bias` may see them."""
        return self.replace(vectors_BHLK=vectors_BHLK)

    def rows(self, start: int, stop: int) -> "Tokens":
        """Return the tokens start..stop-1 of each row."""
        fields = ("positions_BL", "index_BL", "lengths_BL", "hidden_BLD", "sums_BLS", "lagged_BLSN")
        whole = {name: getattr(self, name) for name in fields}
        return self.replace(**{name: field[:, start:stop] for name, field in whole.items() if field is not None})


class Coefficients(nn.Linear):
    """A linear map whose coefficients are read instead of applied: calling it returns (weight, bias)."""

    def forward(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        return self.weight, self.bias


class PositionEncoding(nn.Module):
    """A positional encoding: override the hooks where it acts, and nothing else.

    The keyword-only arguments of `__init__` are its hyper-parameters. It owns no buffers: tables are computed at use, in
    float32 or better, from the config. Parameters are drawn in `reset_parameters`. A module inside it is called, or is
    `Coefficients` where its weights are read: weights may lie elsewhere until a module is called.

    `shared`: one instance serves all layers (at `model.position_encoding`), else each layer owns one (at
        `model.layers.N.self_attn.position_encoding`).
    `depends_on_length`: a token's encoding changes as its document grows, and with it every hidden state above the first
        layer. Such an encoding can't be causal; the cache then keeps the embeddings, and each step is a pass over all.
    `lags`: how many of the latest running sums a token sees (`lagged_BLSN`).
    `paper`: the arXiv id of its source.
    """

    shared = True
    depends_on_length = False
    lags = 0
    paper: str | None = None

    def __init__(self, config):
        super().__init__()
        self.config = config

    def forward(self, action: Callable, *arguments):
        """Return `action(*arguments)`. The model goes through this call wherever a hook may read the encoding's weights, so
        that whatever wraps a module's forward (Accelerate's offloading, FSDP) has them in place."""
        return action(*arguments)

    def reset_parameters(self) -> None:
        """Draw the parameters (with `transformers.initialization`, which leaves loaded ones alone)."""

    def tables(self, queries: Tokens, keys: Tokens) -> tuple[torch.Tensor, ...]:
        """Tensors to compute once per forward pass (once per layer where not shared), handed to every hook below."""
        return ()

    def embed(self, x_BLD: torch.Tensor, tokens: Tokens, *tables: torch.Tensor) -> torch.Tensor:
        """Token embeddings, before the first layer."""
        return x_BLD

    def query(self, q_BHLK: torch.Tensor, tokens: Tokens, *tables: torch.Tensor) -> torch.Tensor:
        """Queries of one layer."""
        return q_BHLK

    def key(self, k_BHLK: torch.Tensor, tokens: Tokens, *tables: torch.Tensor) -> torch.Tensor:
        """Keys of one layer, before they are cached."""
        return k_BHLK

    def value(self, v_BHLK: torch.Tensor, tokens: Tokens, *tables: torch.Tensor) -> torch.Tensor:
        """Values of one layer, before they are cached."""
        return v_BHLK

    def output(self, o_BHLK: torch.Tensor, tokens: Tokens, *tables: torch.Tensor) -> torch.Tensor:
        """The heads' averaged values, before the output projection."""
        return o_BHLK

    def increments(self, x_BLD: torch.Tensor) -> torch.Tensor | None:
        """(B, L, S): what each token adds to the running sums; the cache carries them, padding adds nothing."""
        return None

    def bias(self, queries: Tokens, keys: Tokens, *tables: torch.Tensor) -> Bias | None:
        """What is added to the scaled logits: one of the kinds in `attention_bias`, or None."""
        return None

    @property
    def biases(self) -> bool:
        return type(self).bias is not PositionEncoding.bias

    @classmethod
    def sites(cls) -> tuple[str, ...]:
        """Where it acts, computed from the hooks it overrides."""
        return tuple(site for hook, site in HOOKS.items() if getattr(cls, hook) is not getattr(PositionEncoding, hook))
