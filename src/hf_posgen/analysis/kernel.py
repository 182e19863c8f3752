"""κ(δ): the logit of the key δ back, per pair of tokens (first layer) or on average (any layer).

For linear attention, whose weights are no softmax, κ is the product of the turned features: what its weight is before the
division by the sum.
"""

from dataclasses import dataclass

import torch

from ..model.attention_bias import Rows
from ..model.mixer_linear import LinearAttention
from .attention_view import AttentionView, attention_views, inputs_of
from .context import AnalysisContext, NotApplicable, rotary


@dataclass
class _First:
    """The first layer's queries and keys, before and after the encoding acted; `view` where it is softmax."""

    content_q_BHLK: torch.Tensor
    content_k_BHLK: torch.Tensor
    q_BHLK: torch.Tensor
    k_BHLK: torch.Tensor
    scale: float
    encoding: torch.nn.Module
    view: AttentionView | None = None


def _first_layer(model, tokens: torch.Tensor) -> _First:
    mixer = model.model.layers[0].self_attn
    if isinstance(mixer, LinearAttention):
        return _linear(**inputs_of(model, model.model.layers[:1], tokens)[0])
    views = attention_views(model, tokens)
    if not views or views[0].layer != 0:
        raise NotApplicable("the first layer has no queries that meet keys")
    view = views[0]
    parts = (view.content_q_BHLK, view.content_k_BHLK, view.q_BHLK, view.k_BHLK)
    return _First(*parts, view.module.scaling, view.encoding, view)


def _linear(residual, module, args, context, encoding) -> _First:
    """The steps of `LinearAttention.forward` up to the turned features."""
    hidden, *tables = args
    if encoding is None:
        encoding = module.position_encoding
        tables = encoding.tables(context.queries, context.keys)
    if "logits" in encoding.sites():
        raise NotApplicable("the encoding decays the state of linear attention; it has no kernel of offsets and tokens")
    q, k, _ = module.project(hidden, context.queries.dtype)
    q, k = module.features(q), module.features(k)
    turned_q, turned_k = encoding.query(q, context.queries, *tables), encoding.key(k, context.queries, *tables)
    return _First(q, k, turned_q, turned_k, 1.0 if module.normalized else module.config.head_dim**-0.5, encoding)


@torch.no_grad()
def pair_kernels(model, symbols: int, position: int) -> torch.Tensor:
    """κ_{c,c'}(δ) of the first layer, (H, V, V, position + 1): the logit of a query with token c at `position` and a key
    with token c' δ places before it. Every token's query and key are read off constant sequences.

    Raises `NotApplicable` where the bias of a key depends on what stands between (gates, CoPE).
    """
    first = _first_layer(model, torch.arange(symbols)[:, None].expand(-1, position + 1))
    kernel = torch.einsum("chk,dhmk->hcdm", first.q_BHLK[:, :, position], first.k_BHLK) * first.scale
    view = first.view
    if view is None:
        return kernel.flip(-1)
    if view.queries.sums_BLS is not None or (view.bias is not None and view.bias.needs_logits):
        raise NotApplicable("the logit of a key depends on the tokens between it and the query")
    if view.bias is not None:
        kernel = kernel + _last_bias(view).transpose(0, 1)[:, :, None]
    factor = view.module.logit_scale.factor(view.queries)
    if factor is not None:  # of the query's position alone
        kernel = kernel * factor[0, :, position].reshape(-1, 1, 1, 1)
    return kernel.flip(-1)


def mean_kernel(kernels: torch.Tensor) -> torch.Tensor:
    """κ(δ), (H, δ): the mean of (H, V, V, δ) over the pairs that occur. At δ = 0 a query meets itself, so there c = c'."""
    mean = kernels.mean((1, 2))
    mean[..., 0] = kernels[..., 0].diagonal(dim1=1, dim2=2).mean(-1)
    return mean


def _last_bias(view: AttentionView) -> torch.Tensor:
    """(V or 1, H or 1, M): of the last query, whose token is its row's."""
    last = slice(view.length - 1, view.length)
    span = (last.start, last.stop)
    rows = Rows(
        view.queries.rows(*span),
        view.keys,
        view.q_BHLK[:, :, last],
        view.k_BHLK,
        view.module.scaling,
        view.visible.rows(*span),
    )
    return view.bias.rows(*span).dense(rows)[:, :, 0]


@torch.no_grad()
def mean_logits(context: AnalysisContext, length: int, count: int = 64) -> list[tuple[int, torch.Tensor]]:
    """[(layer, (H, δ))]: the mean logit of the last query by distance, over sequences of the task."""
    return [(view.layer, view.last_logits().mean(0).flip(-1)) for view in context.views(length, count)]


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
    first = _first_layer(model, torch.arange(symbols)[:, None])
    if rotary(first.encoding) is None:
        return None
    half = first.encoding.rotated // 2
    q, k = (
        torch.complex(x[:, :, 0, :half].double(), x[:, :, 0, half : 2 * half].double())
        for x in (first.content_q_BHLK, first.content_k_BHLK)
    )
    scale = first.scale * first.encoding.amplitude**2
    return first.encoding.frequencies(), scale * torch.einsum("chf,dhf->hcdf", q, k.conj())
