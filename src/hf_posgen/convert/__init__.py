"""Weights from transformers' models into ours, and from ours into Llama: same numbers, another class.

| from | becomes | refused |
|---|---|---|
| gpt2 | learned positions, layernorm, plain MLP, biases | cross-attention, logits unscaled or scaled by layer |
| llama | RoPE and each of its scalings, grouped keys, rmsnorm, gated MLP | partial rotation, YaRN with `truncate: false` |
| gpt_neox | partial RoPE, layernorm, plain MLP | `use_parallel_residual: true` (attention and MLP side by side) |
| mpt | ALiBi, layernorm, plain MLP | clipped or normalised queries and keys, a softmax or logit scale, prefix attention |
| bloom | ALiBi, layernorm, plain MLP | a residual taken after the LayerNorm, tensor-parallel slices |
| posgen | Llama, for the RoPE family | what Llama has not: layernorm, plain MLP, other encodings, logit scales, mixers |

What the numbers of a forward pass don't show, and training does: MPT's LayerNorms have no bias, ours start from zeros;
BLOOM normalises its embeddings, ours hold the normalised table, so that head and embeddings are no longer tied; GPT-2's
and NeoX's dropout on embeddings becomes that of the residuals; Llama has no `hidden_dropout`, no sampler and no
`out_of_range`. Cached decoding with dynamic NTK and LongRoPE: Llama keeps keys as they were rotated when they came in, we
rotate them anew as the text grows, so the two agree on whole passes.

T5 is not in the table: an encoder-decoder does not fit a decoder. Its decoder's self-attention does, once the queries'
weights are multiplied by √K (T5 does not scale its logits); `tests/conformance/test_t5_attention.py` shows it.
"""

from ..common.face import lazy_face

__getattr__, __all__ = lazy_face(__name__, {"convert": "folders", "from_transformers": "models", "to_llama": "models"})
