"""What one forward pass knows about its tokens: where they stand, which are real, which keys each may see."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from .attention_mask import Visible, document_lengths, documents
from .caller_mask import CallerMask, Slots
from .posgen_cache import leader
from .position_encoding import PositionEncoding, Tokens


@dataclass(frozen=True)
class Context:
    """One forward pass, as its layers see it.

    queries: the new tokens. keys: those in the cache and the new ones.
    visible: which keys each query may see.
    real_BL: which new tokens are no padding; None where all are.
    documents_BL: number of each new token's document in a packed row; None where no row is packed.
    encoding: the encoding that all layers share; None where each has its own. (No module is an argument of another: what
        offloads weights would move it.)
    logits_to_keep: of how many of the last new tokens a layer's output is wanted; 0: of all.
    """

    queries: Tokens
    keys: Tokens
    visible: Visible
    real_BL: torch.Tensor | None
    documents_BL: torch.Tensor | None
    encoding: PositionEncoding | None = None
    logits_to_keep: int = 0

    def of_last(self, logits_to_keep: int) -> "Context":
        """Return the same pass for a layer whose output is wanted at the last tokens alone; unchanged where that would not
        pay, or needs rows of a mask cut out."""
        visible = self.visible
        plain = isinstance(visible.offset, int) and visible.documents_BL is None and visible.prepared_B1LM is None
        worthwhile = plain and 2 * logits_to_keep <= visible.length
        return replace(self, logits_to_keep=logits_to_keep) if worthwhile else self

    def whole(self) -> "Context":
        """Return the same pass over all M tokens at once, without a cache: for encodings that depend on the length."""
        real = self.visible.real_slots()
        whole = Visible(self.visible.slots, self.visible.slots, 0, self.visible.device, real)
        return Context(self.keys, self.keys, whole, real, None, self.encoding)

    def with_hidden(self, x_BLD: torch.Tensor, encoding: PositionEncoding, layer) -> tuple[Tokens, Tokens]:
        """Return (queries, keys) as one layer's hooks see them: with hidden states and running sums.

        `layer` is that layer of the cache, which keeps the sums, or None.
        """
        queries = self.queries.replace(hidden_BLD=x_BLD)
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
            queries = queries.replace(lagged_BLSN=lagged(before, sums_BLS, encoding.lags, self.documents_BL))
        return queries.replace(sums_BLS=sums_BLS), self.keys.replace(sums_BLS=all_BMS)


def build_context(
    inputs_embeds: torch.Tensor,
    *,
    attention_mask: torch.Tensor | None = None,
    position_ids: torch.Tensor | None = None,
    positions: torch.Tensor | None = None,
    cache=None,
    sampler: Callable[[torch.Tensor], torch.Tensor] | None = None,
    needs_lengths: bool = False,
) -> Context:
    """Read the caller's mask and ids, and return the pass they describe.

    `positions` says where the encoding shall believe the tokens stand; without it the `sampler` maps indices to positions;
    without either a token stands at its index. `needs_lengths`: add each document's length to the tokens.

    Raises `ValueError` where documents restart, or positions are given, with a cache that holds or will hold tokens.
    """
    slots = Slots.of(inputs_embeds, cache)
    mask = CallerMask.read(attention_mask, slots)
    index_BL, unbroken = _read_index(position_ids, mask, slots)
    packed = None if unbroken or slots.new == 1 else documents(index_BL, mask.real_BL)
    if cache is not None:
        _refuse_with_a_cache(packed, positions)
        packed, sampler = None, None
    if positions is not None:
        positions_BL = positions.to(slots.device)
    elif sampler is not None:
        positions_BL = sampler(index_BL.expand(inputs_embeds.shape[:2]))
    else:
        positions_BL = index_BL
    queries = Tokens(
        positions_BL=positions_BL,
        index_BL=index_BL,
        sequential=unbroken and positions_BL is index_BL and isinstance(slots.offset, int),
        dtype=torch.promote_types(inputs_embeds.dtype, torch.float32),
    )
    keys = queries if cache is None else _cached_keys(queries, cache, slots)
    if needs_lengths:
        queries, keys = _with_lengths(queries, keys, packed, mask, slots)
    visible = Visible(slots.new, slots.total, slots.offset, slots.device, mask.real_BM, packed, mask.prepared_B1LM)
    return Context(queries, keys, visible, mask.real_BL, packed)


def _read_index(position_ids, mask: CallerMask, slots: Slots) -> tuple[torch.Tensor, bool]:
    """Return (each new token's index in its document, whether that is known to be one unbroken count of the slots)."""
    if position_ids is None:
        return mask.count_real(slots), not mask.hides
    index_BL = position_ids.to(device=slots.device, dtype=torch.long)
    known = not mask.hides and isinstance(slots.offset, int) and not torch.compiler.is_compiling()
    return index_BL, known and bool((index_BL == slots.of_new()).all())


def _refuse_with_a_cache(packed: torch.Tensor | None, positions: torch.Tensor | None) -> None:
    if packed is not None and not torch.compiler.is_compiling():
        raise ValueError("position_ids restart inside the row (packed documents): pass them without a cache")
    if positions is not None:
        raise ValueError("positions are for a whole sequence without a cache: call with use_cache=False")


def _cached_keys(queries: Tokens, cache, slots: Slots) -> Tokens:
    """Return all keys' tokens (where no layer holds keys, the new ones alone). What layers share stands in the leader's
    cache: the positions, which with a cache are the indices."""
    layer = cache.layers[leader(cache)]
    if "positions" not in layer.streams and isinstance(slots.offset, int) and slots.offset > 0:
        # Filled by somebody else's model, which counts its tokens from 0.
        layer.streams = {"positions": torch.arange(slots.offset, device=slots.device)[None]}
    positions = layer.append("positions", queries.positions_BL)
    layer.sequential = queries.sequential and (slots.offset == 0 or layer.sequential)
    return queries.replace(positions_BL=positions, index_BL=positions, sequential=layer.sequential)


def _with_lengths(queries: Tokens, keys: Tokens, packed, mask: CallerMask, slots: Slots) -> tuple[Tokens, Tokens]:
    """Add how long each token's document is at this step."""
    real = slots.written()
    real = real if mask.real_BM is None else real & mask.real_BM
    lengths = document_lengths(keys.positions_BL, packed, real)
    if packed is not None:  # no cache: queries and keys are the same tokens
        return queries.replace(lengths_BL=lengths), keys.replace(lengths_BL=lengths)
    return tuple(t.replace(lengths_BL=lengths.expand(-1, t.positions_BL.shape[1])) for t in (queries, keys))


def running_sums(steps_BLS: torch.Tensor, documents_BL: torch.Tensor | None) -> torch.Tensor:
    """Return the sums up to and including each token, starting anew in each document."""
    sums = steps_BLS.cumsum(1)
    if documents_BL is None:
        return sums
    documents_BL = documents_BL.contiguous()
    first_slot = torch.searchsorted(documents_BL, documents_BL)  # of each token's document
    before = (sums - steps_BLS).gather(1, first_slot[..., None].expand_as(sums))
    return sums - before


def lagged(before, sums_BLS: torch.Tensor, count: int, documents_BL: torch.Tensor | None) -> torch.Tensor:
    """Return (B, L, S, N): the sums as they stood 0..count-1 tokens earlier, 0 before the document.

    `before` are those that the cache kept, (B, up to count, S), or None.
    """
    length = sums_BLS.shape[1] + count - 1
    whole = (sums_BLS if before is None else torch.cat([before, sums_BLS], 1))[:, -length:]
    lagged_BLSN = torch.nn.functional.pad(whole, (0, 0, length - whole.shape[1], 0)).unfold(1, count, 1).flip(-1)
    if documents_BL is None:
        return lagged_BLSN
    earlier_BLN = torch.nn.functional.pad(documents_BL, (count - 1, 0), value=-1).unfold(1, count, 1).flip(-1)
    return torch.where((earlier_BLN == documents_BL[..., None])[:, :, None], lagged_BLSN, 0)
