"""Which keys a query may see, without ever writing down the whole length × length mask."""

from dataclasses import dataclass, replace

import torch


@dataclass(frozen=True)
class Visible:
    """L queries at slots offset..offset+L-1 of M key slots: a query sees the slots up to its own (causal), those that hold
    a token (`real_BM`), of its own document, or what a prepared mask says (`prepared_B1LM`). It always sees itself, so
    that rows of padding stay finite.
    """

    length: int
    slots: int
    offset: int | torch.Tensor
    device: torch.device
    real_BM: torch.Tensor | None = None
    documents_BL: torch.Tensor | None = None
    prepared_B1LM: torch.Tensor | None = None

    @property
    def only_causal(self) -> bool:
        """Whether nothing but order hides a key, and the queries are the last of the slots."""
        hidden = (self.real_BM, self.documents_BL, self.prepared_B1LM)
        return all(mask is None for mask in hidden) and isinstance(self.offset, int) and self.aligned

    @property
    def aligned(self) -> bool:
        """Whether the queries are known to be the last of the slots."""
        return isinstance(self.offset, int) and self.offset + self.length == self.slots

    def real_slots(self) -> torch.Tensor | None:
        """Return (B or 1, M): which slots hold a token that is no padding; None where all are known to."""
        if self.real_BM is None and self.prepared_B1LM is None and self.aligned:
            return None
        written = torch.arange(self.slots, device=self.device)[None] < self.offset + self.length
        real = written if self.prepared_B1LM is None else self.prepared_B1LM[:, 0, -1]
        return real if self.real_BM is None else real & self.real_BM

    def of_rows(self, start: int, stop: int) -> "Visible":
        """Return the same for some of the queries alone."""
        prepared = None if self.prepared_B1LM is None else self.prepared_B1LM[:, :, start:stop]
        return replace(self, length=stop - start, offset=self.offset + start, prepared_B1LM=prepared)

    def rows(self, start: int, stop: int, slots: int | None = None) -> torch.Tensor:
        """Return (B or 1, 1, stop - start, slots): the mask of some queries against the first `slots` keys."""
        slots = self.slots if slots is None else slots
        if self.length == 1 and self.only_causal:
            return torch.ones(1, 1, 1, slots, dtype=torch.bool, device=self.device)
        query = torch.arange(start, stop, device=self.device)[:, None] + self.offset
        key = torch.arange(slots, device=self.device)[None, :]
        itself = (query == key)[None, None]
        if self.prepared_B1LM is not None:
            return self.prepared_B1LM[:, :, start:stop, :slots] | itself
        seen = (key <= query)[None, None]
        if self.real_BM is not None:
            seen = seen & self.real_BM[:, None, None, :slots]
        if self.documents_BL is not None:
            of_query = self.documents_BL[:, None, self.offset + start : self.offset + stop, None]
            seen = seen & (of_query == self.documents_BL[:, None, None, :slots])
        return seen | itself


def documents(position_ids_BL: torch.Tensor, real_BL: torch.Tensor | None) -> torch.Tensor | None:
    """Return (B, L): document numbers of a packed row, or None where no row is packed.

    A document starts where a token's position isn't larger than that of the token before it, padding left out.
    """
    if real_BL is None:
        starts = position_ids_BL[:, 1:] <= position_ids_BL[:, :-1]
    else:
        slots = torch.arange(real_BL.shape[1], device=real_BL.device)
        before_BL = (
            torch.where(real_BL, slots, -1).cummax(-1).values[:, :-1]
        )  # the last real token's slot; -1: none yet
        earlier = position_ids_BL.expand_as(real_BL).gather(-1, before_BL.clamp(min=0))
        starts = real_BL[:, 1:] & (before_BL >= 0) & (position_ids_BL[:, 1:] <= earlier)
    if not torch.compiler.is_compiling() and not bool(starts.any()):
        return None
    return torch.nn.functional.pad(starts.long().cumsum(-1), (1, 0))


def document_lengths(index_BL: torch.Tensor, documents_BL: torch.Tensor | None, real_BL: torch.Tensor | None):
    """Return (B, L or 1): the largest index + 1 among the real tokens of each token's document."""
    index = index_BL + 1 if real_BL is None else torch.where(real_BL, index_BL + 1, 0)
    if documents_BL is None:
        return index.amax(-1, keepdim=True).clamp(min=1)
    index = index.expand_as(documents_BL)
    longest = torch.zeros_like(documents_BL).scatter_reduce(-1, documents_BL, index, "amax")
    return longest.gather(-1, documents_BL).clamp(min=1)
