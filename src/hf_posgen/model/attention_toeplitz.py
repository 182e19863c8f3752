"""Causal attention under a bias by distance, in memory that grows like L: the bias is a sliding window over one table."""

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

FORWARD_ROWS = 512  # queries per fused call; those of the last few keys are computed in vain
TILE_ROWS, TILE_ELEMENTS = 64, 2**20  # of logits written out at once in the backward pass: 4 MiB in float32


class ToeplitzAttention(torch.autograd.Function):
    """softmax(scale · q · k + table[distance]) v for L queries (B, H, L, K) that are the last of the M keys.

    `table_HM` holds the biases of distances M-1, ..., 0. Queries, last first, each see it one step on, so that a chunk's
    bias is a view. The fused kernel gives its mask no gradient, so the backward pass writes out a tile of logits at a time
    and sums their gradient along diagonals.
    """

    @staticmethod
    def forward(ctx, q, k, v, table_HM, scale: float):
        (B, H, L, _), M = q.shape, k.shape[2]
        out = torch.empty_like(q)
        for start in range(0, L, FORWARD_ROWS):
            rows = slice(start, min(start + FORWARD_ROWS, L))
            n = M - L + rows.stop
            bias = window(table_HM, rows.stop - start, n).expand(B, H, -1, n)
            chunk = q[:, :, rows].flip(2)
            out[:, :, rows] = F.scaled_dot_product_attention(
                chunk, k[:, :, :n], v[:, :, :n], attn_mask=bias, scale=scale
            ).flip(2)
        ctx.save_for_backward(q, k, v, table_HM)
        ctx.scale = scale
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_BHLK):
        q, k, v, table_HM = ctx.saved_tensors
        (B, H, L, _), M, scale = q.shape, k.shape[2], ctx.scale
        heads = [t.flatten(0, 1) for t in (q, k, v, grad_BHLK)]
        table = table_HM.repeat(B, 1)
        d_q, d_k, d_v = (torch.zeros_like(t) for t in heads[:3])
        d_table = torch.zeros_like(table)
        rows = min(L, TILE_ROWS)
        together = max(1, TILE_ELEMENTS // (rows * M))
        for first in range(0, B * H, together):
            some = slice(first, first + together)
            for start in range(0, L, rows):
                stop = min(start + rows, L)
                n = M - L + stop
                q_c, g_c = (heads[i][some, start:stop].flip(1) for i in (0, 3))
                k_n, v_n = (heads[i][some, :n] for i in (1, 2))
                logits = torch.baddbmm(window(table[some], stop - start, n), q_c, k_n.mT, alpha=scale)
                weights = logits.softmax(-1)
                d_v[some, :n].baddbmm_(weights.mT, g_c)
                torch.bmm(g_c, v_n.mT, out=logits)
                d_logits = torch._softmax_backward_data(logits, weights, -1, logits.dtype)
                d_q[some, start:stop] = torch.bmm(d_logits, k_n).mul_(scale).flip(1)
                d_k[some, :n].baddbmm_(d_logits.mT, q_c, alpha=scale)
                d_table[some, M - n :] += diagonal_sums(d_logits)
        return *(t.unflatten(0, (B, H)) for t in (d_q, d_k, d_v)), d_table.unflatten(0, (B, H)).sum(0), None


def window(table_HM: torch.Tensor, rows: int, n: int) -> torch.Tensor:
    """(H, rows, n), a view: (r, j) is the bias between the query r before the last of n and key j, -inf if j is later."""
    hidden = table_HM.new_full((table_HM.shape[0], rows - 1), float("-inf"))
    return torch.cat([table_HM[:, table_HM.shape[1] - n :], hidden], -1).unfold(-1, n, 1)


def diagonal_sums(x_HRN: torch.Tensor) -> torch.Tensor:
    """(H, N): the sums over r of x[r, m - r], for x that is 0 where r + j >= N, as what `window` hides is.

    In rows of N - 1 the same memory shifts each row by one entry more than the row above it; what moves into a row's
    front is the hidden end of the one above, and m = 0 is left over, which the first row alone holds.
    """
    H, R, N = x_HRN.shape
    shifted = x_HRN.reshape(H, R * N)[:, 1 : 1 + R * (N - 1)].unflatten(1, (R, N - 1))
    return torch.cat([x_HRN[:, 0, :1], shifted.sum(1)], 1)
