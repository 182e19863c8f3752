"""What the caller says about one pass: how many tokens are new, and which are padding."""

from dataclasses import dataclass

import torch

from .posgen_cache import leader


@dataclass(frozen=True)
class Slots:
    """The key slots of one pass: `new` tokens are written from `offset` on; `total` is how many slots the keys have (more
    than are written, in a static cache, whose offset is a tensor)."""

    offset: int | torch.Tensor
    new: int
    total: int
    device: torch.device

    @classmethod
    def of(cls, inputs_embeds_BLD: torch.Tensor, cache) -> "Slots":
        """Return the slots of these inputs behind what the cache (or None) holds."""
        new, device = inputs_embeds_BLD.shape[1], inputs_embeds_BLD.device
        if cache is None:
            return cls(0, new, new, device)
        offset = cache.get_seq_length(leader(cache))
        if isinstance(offset, torch.Tensor):  # a static cache counts in place: keep what it was before this pass
            offset = offset.clone()
        return cls(offset, new, cache.get_mask_sizes(new, leader(cache))[0], device)

    def of_new(self) -> torch.Tensor:
        """Return (L,): the slots of the new tokens."""
        if isinstance(self.offset, int):
            return torch.arange(self.offset, self.offset + self.new, device=self.device)
        return torch.arange(self.new, device=self.device) + self.offset

    def written(self) -> torch.Tensor:
        """Return (1, M): which slots hold a token after this pass."""
        return torch.arange(self.total, device=self.device)[None] < self.offset + self.new


@dataclass(frozen=True)
class CallerMask:
    """What the caller's `attention_mask` says.

    real_BM: which slots hold a token that is no padding; from a (B, M) mask.
    prepared_B1LM: which keys each query sees; from a (B, 1, L, M) mask, boolean or additive.
    real_BL: which new tokens are no padding; from either.
    All are None where nothing is hidden.
    """

    real_BM: torch.Tensor | None = None
    prepared_B1LM: torch.Tensor | None = None
    real_BL: torch.Tensor | None = None

    @property
    def hides(self) -> bool:
        return self.real_BL is not None

    @classmethod
    def read(cls, mask: torch.Tensor | None, slots: Slots) -> "CallerMask":
        """Raise `ValueError` for a (B, M) mask that doesn't cover all tokens, or holds other numbers than 0 and 1."""
        if mask is None or (mask.ndim == 2 and not torch.compiler.is_compiling() and _all_real(mask)):
            return cls()
        new = slots.of_new()
        if mask.ndim == 4:
            prepared = (mask if mask.dtype == torch.bool else mask == 0)[..., : slots.total]
            itself = new[None, :, None].expand(prepared.shape[0], slots.new, 1)
            return cls(prepared_B1LM=prepared, real_BL=prepared[:, 0].gather(-1, itself)[..., 0])
        real = mask.to(device=slots.device, dtype=torch.bool)
        if real.shape[1] < slots.total:  # the empty slots of a static cache
            if isinstance(slots.offset, int) and real.shape[1] < slots.offset + slots.new:
                raise ValueError(
                    f"attention_mask covers {real.shape[1]} tokens; the cache and the input hold "
                    f"{slots.offset + slots.new}"
                )
            real = torch.nn.functional.pad(real, (0, slots.total - real.shape[1]))
        real = real[:, : slots.total]
        return cls(real_BM=real, real_BL=real[:, new])

    def count_real(self, slots: Slots) -> torch.Tensor:
        """Return (B or 1, L): each new token's index among the real tokens of its row; padding on the left counts as 0."""
        new = slots.of_new()
        return new[None] if self.real_BM is None else (self.real_BM.long().cumsum(-1)[:, new] - 1).clamp(min=0)


def _all_real(mask_BM: torch.Tensor) -> bool:
    if bool((mask_BM == 1).all()):
        return True
    if not bool(((mask_BM == 0) | (mask_BM == 1)).all()):
        other = mask_BM[(mask_BM != 0) & (mask_BM != 1)][0].item()
        raise ValueError(
            f"attention_mask holds {other}; allowed: 1 for a token, 0 for padding (documents packed into one row are told "
            "apart by position_ids that restart)"
        )
    return False
