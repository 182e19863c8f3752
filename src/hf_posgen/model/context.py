"""What one forward pass knows about its tokens: where they stand, which are real, which keys are seen."""

from dataclasses import dataclass, replace

import torch

from .attention_mask import Visible, document_lengths, documents
from .posgen_cache import leader
from .position_encoding import PositionEncoding, Tokens


@dataclass(frozen=True)
class Context:
    """`queries` are the new tokens, `keys` those in the cache and the new ones; `real_BL` is None where no new token is
    padding. asked: of how many of the last new tokens a layer's output is wanted (None: of all)."""

    queries: Tokens
    keys: Tokens
    visible: Visible
    real_BL: torch.Tensor | None
    documents_BL: torch.Tensor | None
    asked: int | None = None

    def of_last(self, asked: int) -> "Context":
        """The same pass for a layer whose output is wanted at the last tokens alone; unchanged where that would not pay,
        or needs rows of a mask cut out."""
        visible = self.visible
        plain = isinstance(visible.offset, int) and visible.documents_BL is None and visible.given_B1LM is None
        return replace(self, asked=asked) if plain and 2 * asked <= visible.length else self

    def whole(self) -> "Context":
        """The same pass over all M tokens at once, without a cache: for encodings that depend on the length."""
        slots, visible = self.visible.slots, self.visible
        written = torch.arange(slots, device=visible.device)[None] < visible.offset + visible.length
        real = written if visible.given_B1LM is None else visible.given_B1LM[:, 0, -1]
        real = real if visible.real_BM is None else real & visible.real_BM
        if isinstance(visible.offset, int) and visible.real_BM is None and visible.given_B1LM is None:
            real = None if visible.aligned else real
        whole = Visible(slots, slots, 0, visible.device, real)
        return Context(self.keys, self.keys, whole, real, None)

    def with_hidden(self, x_BLD: torch.Tensor, encoding: PositionEncoding, layer) -> tuple[Tokens, Tokens]:
        """The tokens as one layer's hooks see them: with hidden states and running sums."""
        queries = self.queries.but(hidden_BLD=x_BLD)
        steps_BLS = encoding.increments(x_BLD)
        if steps_BLS is None:
            return queries, self.keys
        if self.real_BL is not None:
            steps_BLS = steps_BLS * self.real_BL[..., None]
        sums_BLS = running_sums(steps_BLS, self.documents_BL)
        kept = max(1, encoding.lags)
        before = None if layer is None else layer.last("sums", kept)
        if before is not None:
            sums_BLS = sums_BLS + before[:, -1:]
        all_BMS = sums_BLS if layer is None else layer.append("sums", sums_BLS, kept)
        if encoding.lags:
            queries = queries.but(lagged_BLSN=lagged(before, sums_BLS, encoding.lags, self.documents_BL))
        return queries.but(sums_BLS=sums_BLS), self.keys.but(sums_BLS=all_BMS)


def running_sums(steps_BLS: torch.Tensor, documents_BL: torch.Tensor | None) -> torch.Tensor:
    """Sums up to and including each token, starting anew in each document."""
    sums = steps_BLS.cumsum(1)
    if documents_BL is None:
        return sums
    first = torch.searchsorted(
        documents_BL.contiguous(), documents_BL.contiguous()
    )  # each token's document's first slot
    before = (sums - steps_BLS).gather(1, first[..., None].expand_as(sums))
    return sums - before


def lagged(before, sums_BLS: torch.Tensor, count: int, documents_BL: torch.Tensor | None) -> torch.Tensor:
    """(B, L, S, N): the sums as they stood 0..count-1 tokens earlier, 0 before the document; `before` are the cache's."""
    length = sums_BLS.shape[1] + count - 1
    whole = (sums_BLS if before is None else torch.cat([before, sums_BLS], 1))[:, -length:]
    lagged_BLSN = torch.nn.functional.pad(whole, (0, 0, length - whole.shape[1], 0)).unfold(1, count, 1).flip(-1)
    if documents_BL is None:
        return lagged_BLSN
    of_BLN = torch.nn.functional.pad(documents_BL, (count - 1, 0), value=-1).unfold(1, count, 1).flip(-1)
    return torch.where((of_BLN == documents_BL[..., None])[:, :, None], lagged_BLSN, 0)


def build_context(
    inputs_embeds: torch.Tensor,
    attention_mask: torch.Tensor | None,
    position_ids: torch.Tensor | None,
    positions: torch.Tensor | None,
    cache,
    sampler,
    needs_lengths: bool,
) -> Context:
    """Read the caller's masks and ids. `sampler` maps indices to positions, or is None; `positions` overrules it.

    Raises `ValueError` where documents restart, or positions are given, with a cache that holds or will hold tokens.
    """
    (B, L), device = inputs_embeds.shape[:2], inputs_embeds.device
    offset = 0 if cache is None else cache.get_seq_length(leader(cache))
    if isinstance(offset, torch.Tensor):  # a static cache counts in place: keep what it was before this pass
        offset = offset.clone()
    slots = L if cache is None else cache.get_mask_sizes(L, leader(cache))[0]
    attention_mask = _none_if_all_real(attention_mask)
    real_BM, given, real_BL = _read_mask(attention_mask, offset, L, slots, device)
    counted = position_ids is None and attention_mask is None
    if position_ids is None:
        position_ids = _count(real_BM, offset, L, device)
    elif not torch.compiler.is_compiling() and attention_mask is None:
        counted = isinstance(offset, int) and bool((position_ids == _places(offset, L, device)).all())
    ids = position_ids.to(device=device, dtype=torch.long)
    packed = None if counted or L == 1 else documents(ids, real_BL)
    if packed is not None and cache is not None:
        if not torch.compiler.is_compiling():
            raise ValueError("position_ids restart inside the row (packed documents): pass them without a cache")
        packed = None
    if cache is not None and positions is not None:
        raise ValueError("positions are for a whole sequence without a cache: call with use_cache=False")
    moved = positions is not None or (sampler is not None and cache is None)
    if positions is None:
        positions = sampler(ids.expand(B, L)) if moved else ids
    queries = Tokens(
        positions_BL=positions.to(device),
        index_BL=ids,
        sequential=counted and not moved and isinstance(offset, int),
        dtype=torch.promote_types(inputs_embeds.dtype, torch.float32),
    )
    keys = queries if cache is None else _cached_keys(queries, cache, offset)
    if needs_lengths:
        queries, keys = _with_lengths(queries, keys, packed, real_BM, offset, slots)
    visible = Visible(L, slots, offset, device, real_BM, packed, given)
    return Context(queries, keys, visible, real_BL, packed)


def _none_if_all_real(mask: torch.Tensor | None) -> torch.Tensor | None:
    if mask is None or mask.ndim != 2 or torch.compiler.is_compiling():
        return mask
    return None if bool(mask.all()) else mask


def _read_mask(mask, offset, L: int, slots: int, device):
    """(real_BM, given_B1LM, real_BL) from a (B, M) mask of real tokens, or a prepared (B, 1, L, M) one."""
    if mask is None:
        return None, None, None
    where = _places(offset, L, device)
    if mask.ndim == 4:
        given = mask if mask.dtype == torch.bool else mask == 0
        given = given[..., :slots]
        return None, given, given[:, 0].gather(-1, where[None, :, None].expand(given.shape[0], L, 1))[..., 0]
    real = mask.to(device=device, dtype=torch.bool)
    if real.shape[1] < slots:  # the empty slots of a static cache
        if isinstance(offset, int) and real.shape[1] < offset + L:
            raise ValueError(f"attention_mask covers {real.shape[1]} tokens; the cache and the input hold {offset + L}")
        real = torch.nn.functional.pad(real, (0, slots - real.shape[1]))
    real = real[:, :slots]
    return real, None, real[:, where]


def _places(offset, L: int, device) -> torch.Tensor:
    """(L,): the slots of the new tokens."""
    if isinstance(offset, int):
        return torch.arange(offset, offset + L, device=device)
    return torch.arange(L, device=device) + offset


def _count(real_BM: torch.Tensor | None, offset, L: int, device) -> torch.Tensor:
    """Each new token's index among the real tokens of its row; padding on the left counts as 0."""
    where = _places(offset, L, device)
    return where[None] if real_BM is None else (real_BM.long().cumsum(-1)[:, where] - 1).clamp(min=0)


def _cached_keys(queries: Tokens, cache, offset) -> Tokens:
    """All keys' tokens (where no layer holds keys, the new ones alone). What layers share stands in the leader's cache:
    the positions, which with a cache are the indices."""
    layer = cache.layers[leader(cache)]
    if "positions" not in layer.streams and isinstance(offset, int) and offset > 0:  # filled by somebody else's model
        past = torch.arange(offset, device=queries.positions_BL.device)[None]
        layer.streams = {"positions": past}
    positions = layer.append("positions", queries.positions_BL)
    if not hasattr(layer, "sequential") or offset == 0:
        layer.sequential = True
    layer.sequential = layer.sequential and queries.sequential
    return queries.but(positions_BL=positions, index_BL=positions, sequential=layer.sequential)


def _with_lengths(queries: Tokens, keys: Tokens, packed, real_BM, offset, slots: int) -> tuple[Tokens, Tokens]:
    """Add how long each token's document is at this step."""
    written = torch.arange(slots, device=keys.positions_BL.device)[None] < offset + queries.positions_BL.shape[1]
    real = written if real_BM is None else written & real_BM
    lengths = document_lengths(keys.positions_BL, packed, real)
    of = lambda tokens: lengths.expand(-1, tokens.positions_BL.shape[1])  # noqa: E731
    if packed is not None:  # no cache: queries and keys are the same tokens
        return queries.but(lengths_BL=lengths), keys.but(lengths_BL=lengths)
    return queries.but(lengths_BL=of(queries)), keys.but(lengths_BL=of(keys))
