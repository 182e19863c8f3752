"""Cache layers that hold, beside keys and values, whatever else decoding needs.

| | shape | holds | in a dynamic layer | in a static layer | in a state layer |
|---|---|---|---|---|---|
| *streams* | (B, M, ...) | per token: its position, its running sums | grow | written in place | the last few |
| *states* | (B, ...) | per row: a recurrent state | | | replaced |

Any `DynamicCache` or `StaticCache` works: `adopt` turns its layers into ours when the model first sees it.
"""

from collections.abc import Callable

import torch
from transformers.cache_utils import (
    Cache,
    CacheLayerMixin,
    DynamicLayer,
    LinearAttentionLayer,
    StaticLayer,
)

Change = Callable[[torch.Tensor], torch.Tensor]


class _Streams:
    """Tensors beside the keys, whose rows are chosen as the keys' are.

    sequential: all tokens so far stand at 0, 1, 2, ..., known without looking.
    """

    streams: dict[str, torch.Tensor]
    sequential = True

    def change_rows(self, change: Change) -> None:
        """Apply `change` to every tensor with a row per sequence; one row that stands for all stays."""
        self.streams = {name: s if s.shape[0] == 1 else change(s) for name, s in self.streams.items()}

    def reset(self) -> None:
        super().reset()
        self.streams = {}

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        super().reorder_cache(beam_idx)
        self.change_rows(lambda tensor: tensor.index_select(0, beam_idx.to(tensor.device)))

    def batch_repeat_interleave(self, repeats: int) -> None:
        super().batch_repeat_interleave(repeats)
        self.change_rows(lambda tensor: tensor.repeat_interleave(repeats, dim=0))

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        super().batch_select_indices(indices)
        self.change_rows(lambda tensor: tensor[indices])


class PosGenDynamicLayer(_Streams, DynamicLayer):
    """Keys, values and streams that grow by concatenation."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.streams = {}

    def append(self, name: str, new_BL: torch.Tensor, kept: int = 1) -> torch.Tensor:
        """Add the new tokens' part of a stream; return the whole stream (B, M, ...). (`kept` concerns states alone.)"""
        old = self.streams.get(name)
        if old is not None and old.shape[0] != new_BL.shape[0]:  # a row that stood for all meets rows that differ
            rows = max(old.shape[0], new_BL.shape[0])
            old, new_BL = old.expand(rows, *old.shape[1:]), new_BL.expand(rows, *new_BL.shape[1:])
        self.streams[name] = new_BL if old is None else torch.cat([old, new_BL], dim=1)
        return self.streams[name]

    def last(self, name: str, count: int = 1) -> torch.Tensor | None:
        """Return (B, up to count, ...): the stream at the last tokens before the new ones."""
        return self.streams[name][:, -count:] if name in self.streams else None

    def crop(self, tokens_to_remove: int) -> None:
        super().crop(tokens_to_remove)
        if tokens_to_remove:
            self.streams = {name: stream[:, : -abs(tokens_to_remove)] for name, stream in self.streams.items()}


class PosGenStaticLayer(_Streams, StaticLayer):
    """Keys, values and streams of fixed size, written in place."""

    def __init__(self, max_cache_len: int, **kwargs):
        super().__init__(max_cache_len=max_cache_len, **kwargs)
        self.streams = {}

    def append(self, name: str, new_BL: torch.Tensor, kept: int = 1) -> torch.Tensor:
        """As of a dynamic layer; slots that hold no token yet are 0."""
        if name not in self.streams:
            self.streams[name] = new_BL.new_zeros(new_BL.shape[0], self.max_cache_len, *new_BL.shape[2:])
        start = self.cumulative_length.to(new_BL.device)
        slots = torch.arange(new_BL.shape[1], device=new_BL.device) + start
        self.streams[name].index_copy_(1, slots, new_BL)
        return self.streams[name]

    def last(self, name: str, count: int = 1) -> torch.Tensor | None:
        """Return (B, count, ...): as of a dynamic layer, with zeros before the first token."""
        if name not in self.streams:
            return None
        stream = self.streams[name]
        slots = torch.arange(-count, 0, device=stream.device) + self.cumulative_length.to(stream.device)
        last = stream.index_select(1, slots.clamp(min=0))
        return torch.where((slots >= 0).reshape(-1, *[1] * (last.ndim - 2)), last, 0)


class _WithoutKeys(CacheLayerMixin):
    """What the library asks of a layer, where there are no keys and values to do it to."""

    is_compileable = False
    is_croppable = False
    supports_early_init = False
    is_sliding = False

    def lazy_initialization(self, key_states, value_states) -> None:
        self.is_initialized = True

    def update(self, key_states, value_states, *args, **kwargs):
        raise ValueError("a recurrent layer caches states, not keys and values")

    def get_max_length(self) -> int:
        return -1

    def offload(self) -> None:
        """Nothing to move: the states are small."""

    def prefetch(self) -> None:
        """Nothing to move back."""

    def reset(self) -> None:
        self.is_initialized = False

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        """No keys to reorder."""

    def batch_repeat_interleave(self, repeats: int) -> None:
        """No keys to repeat."""

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """No keys to select."""

    def crop(self, tokens_to_remove: int) -> None:
        if tokens_to_remove:
            raise ValueError("a recurrent state can't be cropped: its past is not kept")


class PosGenStateLayer(_Streams, _WithoutKeys):
    """Recurrent states, and how many tokens went by (`seen`). Constant in size."""

    def __init__(self, **kwargs):
        super().__init__()
        self.streams: dict[str, torch.Tensor] = {}
        self.states: dict[str, torch.Tensor] = {}
        self.seen = 0

    def advance(self, tokens: int, states: dict[str, torch.Tensor]) -> None:
        """Put the states after `tokens` more tokens; copied, for a slice would keep the whole pass in memory."""
        self.states = {name: state.clone() for name, state in states.items()}
        self.seen, self.is_initialized = self.seen + tokens, True

    def append(self, name: str, new_BL: torch.Tensor, kept: int = 1) -> torch.Tensor:
        """Keep the last `kept` tokens' part of a stream, for nobody looks back farther here; return the new tokens'."""
        whole = torch.cat([self.streams[name], new_BL], 1) if kept > 1 and name in self.streams else new_BL
        self.streams[name] = whole[:, -kept:].clone()
        return new_BL

    last = PosGenDynamicLayer.last

    def change_rows(self, change: Change) -> None:
        super().change_rows(change)
        self.states = {name: change(state) for name, state in self.states.items()}

    def get_seq_length(self) -> int:
        return self.seen

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.seen + query_length, 0

    def reset(self) -> None:
        super().reset()
        self.states, self.seen = {}, 0


def leader(cache: Cache) -> int:
    """Return the first layer that holds keys, or 0: it counts the tokens, and keeps what all layers share about them."""
    with_keys = (i for i, layer in enumerate(cache.layers) if not isinstance(layer, PosGenStateLayer))
    return next(with_keys, 0)


def recall(cache: Cache, inputs_embeds_BLD: torch.Tensor) -> torch.Tensor:
    """Keep the embeddings instead of keys and values; return those of all tokens (B, M, D)."""
    whole = cache.layers[leader(cache)].append("embeddings", inputs_embeds_BLD)
    counter = inputs_embeds_BLD.new_zeros(inputs_embeds_BLD.shape[0], 1, inputs_embeds_BLD.shape[1], 1)
    for i, layer in enumerate(cache.layers):  # nothing to keep, but the cache counts tokens by its keys
        if isinstance(layer, PosGenStateLayer):
            layer.advance(inputs_embeds_BLD.shape[1], {})
        else:
            cache.update(counter, counter, i)
    return whole


OURS = (PosGenDynamicLayer, PosGenStaticLayer, PosGenStateLayer)


def adopt(cache: Cache, config) -> Cache:
    """Make every layer of a cache one of ours, in place, keeping what it holds.

    Raises `ValueError` for kinds of cache that can't carry positions and states (quantized, sliding).
    """
    if cache.layer_class_to_replicate is not None:  # a cache that makes its layers when they are first used
        for layer_type in config.layer_types[len(cache.layers) :]:
            cache.layers.append(PosGenDynamicLayer() if layer_type == "full_attention" else PosGenStateLayer())
        cache.layer_class_to_replicate = None
    if not all(isinstance(layer, OURS) for layer in cache.layers):
        cache.layers = [_ours(layer) for layer in cache.layers]
    return cache


def _ours(layer: CacheLayerMixin) -> CacheLayerMixin:
    if isinstance(layer, OURS):
        return layer
    if type(layer) is LinearAttentionLayer:
        return PosGenStateLayer()
    if type(layer) is DynamicLayer:
        ours = PosGenDynamicLayer()
    elif type(layer) is StaticLayer:
        ours = PosGenStaticLayer(layer.max_cache_len)
    else:
        raise ValueError(f"a cache with {type(layer).__name__} is not supported; use DynamicCache or StaticCache")
    for name, value in vars(layer).items():
        setattr(ours, name, value)
    return ours
