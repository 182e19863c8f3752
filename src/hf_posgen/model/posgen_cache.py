"""Cache layers that hold, beside keys and values, whatever else decoding needs: one number or vector per token (its
position, its running sums) in named *streams*, and one tensor per row (a recurrent state) in named *states*.

Any `DynamicCache` or `StaticCache` works: `adopt` turns its layers into ours when the model first sees it.
"""

import torch
from transformers.cache_utils import (
    Cache,
    CacheLayerMixin,
    DynamicLayer,
    LinearAttentionLayer,
    StaticLayer,
)


class _Streams:
    """Per-token tensors (B, M, ...) that grow, reorder and crop as the keys do."""

    streams: dict[str, torch.Tensor]

    def _map_streams(self, change) -> None:
        self.streams = {name: change(stream) for name, stream in self.streams.items()}

    def reset(self) -> None:
        super().reset()
        self.streams = {}

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        super().reorder_cache(beam_idx)
        self._map_streams(lambda s: s if s.shape[0] == 1 else s.index_select(0, beam_idx.to(s.device)))

    def batch_repeat_interleave(self, repeats: int) -> None:
        super().batch_repeat_interleave(repeats)
        self._map_streams(lambda s: s if s.shape[0] == 1 else s.repeat_interleave(repeats, dim=0))

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        super().batch_select_indices(indices)
        self._map_streams(lambda s: s if s.shape[0] == 1 else s[indices])


class PosGenDynamicLayer(_Streams, DynamicLayer):
    """Grows by concatenation."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.streams = {}

    def append(self, name: str, new_BL: torch.Tensor, kept: int = 1) -> torch.Tensor:
        """Add the new tokens' part of a stream; returns the whole stream (B, M, ...). (`kept` concerns states alone.)"""
        old = self.streams.get(name)
        if old is not None and old.shape[0] != new_BL.shape[0]:  # a row that stood for all meets rows that differ
            rows = max(old.shape[0], new_BL.shape[0])
            old, new_BL = old.expand(rows, *old.shape[1:]), new_BL.expand(rows, *new_BL.shape[1:])
        self.streams[name] = new_BL if old is None else torch.cat([old, new_BL], dim=1)
        return self.streams[name]

    def last(self, name: str, count: int = 1) -> torch.Tensor | None:
        """(B, up to count, ...): the stream at the last tokens before the new ones."""
        return self.streams[name][:, -count:] if name in self.streams else None

    def crop(self, tokens_to_remove: int) -> None:
        super().crop(tokens_to_remove)
        if tokens_to_remove and self.streams:
            self._map_streams(lambda s: s[:, : -abs(tokens_to_remove)])


class PosGenStaticLayer(_Streams, StaticLayer):
    """Of fixed size, written in place."""

    def __init__(self, max_cache_len: int, **kwargs):
        super().__init__(max_cache_len=max_cache_len, **kwargs)
        self.streams = {}

    def append(self, name: str, new_BL: torch.Tensor, kept: int = 1) -> torch.Tensor:
        if name not in self.streams:
            shape = (new_BL.shape[0], self.max_cache_len, *new_BL.shape[2:])
            self.streams[name] = new_BL.new_zeros(shape)
        start = self.cumulative_length.to(new_BL.device)
        slots = torch.arange(new_BL.shape[1], device=new_BL.device) + start
        self.streams[name].index_copy_(1, slots, new_BL)
        return self.streams[name]

    def last(self, name: str, count: int = 1) -> torch.Tensor | None:
        if name not in self.streams:
            return None
        stream = self.streams[name]
        slots = torch.arange(-count, 0, device=stream.device) + self.cumulative_length.to(stream.device)
        last = stream.index_select(1, slots.clamp(min=0))
        return torch.where((slots >= 0).reshape(-1, *[1] * (last.ndim - 2)), last, 0)


class PosGenStateLayer(_Streams, CacheLayerMixin):
    """For layers without keys: their recurrent states, and how many tokens went by. Constant in size."""

    is_compileable = False
    is_croppable = False
    supports_early_init = False
    is_sliding = False

    def __init__(self, **kwargs):
        super().__init__()
        self.streams: dict[str, torch.Tensor] = {}
        self.states: dict[str, torch.Tensor] = {}
        self.seen = 0

    def lazy_initialization(self, key_states, value_states) -> None:
        self.is_initialized = True

    def update(self, key_states, value_states, *args, **kwargs):
        raise ValueError("a recurrent layer caches states, not keys and values")

    def advance(self, tokens: int, states: dict[str, torch.Tensor]) -> None:
        """Put the states after `tokens` more tokens; copied, for a slice would keep the whole pass in memory."""
        self.states = {name: state.clone() for name, state in states.items()}
        self.seen, self.is_initialized = self.seen + tokens, True

    def append(self, name: str, new_BL: torch.Tensor, kept: int = 1) -> torch.Tensor:
        """Nobody looks back farther here than `kept` tokens: their part alone is kept; returns the new tokens'."""
        whole = torch.cat([self.streams[name], new_BL], 1) if kept > 1 and name in self.streams else new_BL
        self.streams[name] = whole[:, -kept:].clone()
        return new_BL

    last = PosGenDynamicLayer.last

    def get_seq_length(self) -> int:
        return self.seen

    def get_max_length(self) -> int:
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.seen + query_length, 0

    def offload(self) -> None:
        """Nothing to move: the states are small."""

    def prefetch(self) -> None:
        """Nothing to move back."""

    def reset(self) -> None:
        self.streams, self.states, self.seen, self.is_initialized = {}, {}, 0, False

    def _map_states(self, change) -> None:
        self.states = {name: change(state) for name, state in self.states.items()}

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        self._map_states(lambda s: s.index_select(0, beam_idx.to(s.device)))
        self._map_streams(lambda s: s if s.shape[0] == 1 else s.index_select(0, beam_idx.to(s.device)))

    def batch_repeat_interleave(self, repeats: int) -> None:
        self._map_states(lambda s: s.repeat_interleave(repeats, dim=0))
        self._map_streams(lambda s: s if s.shape[0] == 1 else s.repeat_interleave(repeats, dim=0))

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        self._map_states(lambda s: s[indices])
        self._map_streams(lambda s: s if s.shape[0] == 1 else s[indices])

    def crop(self, tokens_to_remove: int) -> None:
        if tokens_to_remove:
            raise ValueError("a recurrent state can't be cropped: its past is not kept")


def leader(cache: Cache) -> int:
    """The first layer that holds keys: it counts the tokens, and keeps what all layers share about them. 0 where no layer
    holds any."""
    holds = (i for i, layer in enumerate(cache.layers) if not isinstance(layer, PosGenStateLayer))
    return next(holds, 0)


def recall(cache: Cache, inputs_embeds_BLD: torch.Tensor) -> torch.Tensor:
    """Keep the embeddings instead of keys and values; returns those of all tokens (B, M, D)."""
    whole = cache.layers[leader(cache)].append("embeddings", inputs_embeds_BLD)
    counter = inputs_embeds_BLD.new_zeros(inputs_embeds_BLD.shape[0], 1, inputs_embeds_BLD.shape[1], 1)
    for i, layer in enumerate(cache.layers):  # nothing to keep, but the cache counts tokens by its keys
        if isinstance(layer, PosGenStateLayer):
            layer.advance(inputs_embeds_BLD.shape[1], {})
        else:
            cache.update(counter, counter, i)
    return whole


OURS = {DynamicLayer: PosGenDynamicLayer, StaticLayer: PosGenStaticLayer, LinearAttentionLayer: PosGenStateLayer}


def adopt(cache: Cache, config) -> Cache:
    """Make every layer of a cache one of ours, in place, keeping what it holds.

    `ValueError` for kinds of cache that can't carry positions and states (quantized, sliding).
    """
    if cache.layer_class_to_replicate is not None:
        cache.layers = [_ours(layer, type(layer)) for layer in cache.layers]
        for layer_type in config.layer_types[len(cache.layers) :]:
            cache.layers.append(PosGenDynamicLayer() if layer_type == "full_attention" else PosGenStateLayer())
        cache.layer_class_to_replicate = None
    elif not all(isinstance(layer, tuple(OURS.values())) for layer in cache.layers):
        cache.layers = [_ours(layer, type(layer)) for layer in cache.layers]
    return cache


def _ours(layer, kind: type):
    if kind in OURS.values():
        return layer
    if kind not in OURS:
        raise ValueError(f"a cache with {kind.__name__} is not supported; use DynamicCache or StaticCache")
    if kind is LinearAttentionLayer:
        return PosGenStateLayer()
    new = OURS[kind].__new__(OURS[kind])
    new.__dict__.update(layer.__dict__, streams={})
    return new
