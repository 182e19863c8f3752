"""κ(δ): the logit of the key δ back, per pair of tokens (first layer) or on average (any layer)."""

import torch

from ..model.attention_bias import Rows
from .attention_view import attention_views
from .subject import NotApplicable, Subject


@torch.no_grad()
def pair_kernels(model, symbols: int, position: int, first: int = 0) -> torch.Tensor:
    """κ_{c,c'}(δ) of the first layer, (H, V, V, position - first + 1): the logit of a query with token c at `position`
    and a key with token c' δ places before it. Every token's query and key are read off constant sequences.

    Raises `NotApplicable` where the bias of a key depends on what stands between (gates, CoPE).
    """
    tokens = torch.arange(symbols)[:, None].expand(-1, position + 1)
    views = attention_views(model, tokens)
    if not views or views[0].layer != 0:
        raise NotApplicable("the first layer has no softmax attention")
    view = views[0]
    contextual = view.queries.sums_BLS is not None or (view.bias is not None and view.bias.needs_logits)
    if contextual:
        raise NotApplicable("the logit of a key depends on the tokens between it and the query")
    last = slice(position, position + 1)
    kernel = torch.einsum("chk,dhmk->hcdm", view.q_BHLK[:, :, position], view.k_BHLK) * view.module.scaling
    if view.bias is not None:
        rows = Rows(
            view.queries.rows(position, position + 1),
            view.keys,
            view.q_BHLK[:, :, last],
            view.k_BHLK,
            view.module.scaling,
            view.visible.rows(position, position + 1),
        )
        bias = view.bias.rows(position, position + 1).dense(rows)[:, :, 0]  # (V or 1, H or 1, M)
        kernel = kernel + bias.transpose(0, 1)[:, :, None]
    factor = view.module.logit_scale.factor(view.queries)
    if factor is not None:
        kernel = kernel * factor[:, :, position].transpose(0, 1)[..., None, None].mean(1, keepdim=True)
    return kernel.flip(-1)[..., : position - first + 1]


@torch.no_grad()
def mean_logits(subject: Subject, length: int, count: int = 64) -> list[tuple[int, torch.Tensor]]:
    """[(layer, (H, δ))]: the mean logit of the last query by distance, over sequences of the task."""
    return [(view.layer, view.last_logits().mean(0).flip(-1)) for view in subject.views(length, count)]


def rank_one_share(kernels: torch.Tensor, centred: bool) -> torch.Tensor:
    """(H,): the first singular value's share of the squared sum, of pairs × offsets matrices (H, V, V, δ)."""
    matrix = kernels.double().flatten(1, 2)
    if centred:
        matrix = matrix - matrix.mean(-1, keepdim=True)
    values = torch.linalg.svdvals(matrix).square()
    return values[:, 0] / values.sum(-1).clamp(min=1e-300)


@torch.no_grad()
def frequency_parts(model, symbols: int) -> tuple[torch.Tensor, torch.Tensor] | None:
    """θ_F and Z (H, V, V, F) with κ_{c,c'}(δ) = Σ_f Re(Z_f exp(i θ_f δ)) (plus a part that doesn't rotate), for the first
    layer under a rotary encoding; None under others. The phase φ_f is -arg Z_f, the amplitude |Z_f|."""
    from .subject import rotary

    views = attention_views(model, torch.arange(symbols)[:, None])
    if not views or views[0].layer != 0 or rotary(views[0].encoding) is None:
        return None
    view = views[0]
    half = view.encoding.rotated // 2
    q, k = (
        torch.complex(x[:, :, 0, :half].double(), x[:, :, 0, half : 2 * half].double())
        for x in (view.content_q_BHLK, view.content_k_BHLK)
    )
    scale = view.module.scaling * view.encoding.amplitude**2
    return view.encoding.frequencies(), scale * torch.einsum("chf,dhf->hcdf", q, k.conj())
