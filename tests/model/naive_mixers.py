"""The mixers once more, in float64 loops: linear attention with all its weights written out (quadratic), the gated form
and the recurrence token by token."""

import torch

from .naive import TWINS, ZERO, Env, _layer

FEATURES = {
    "elu1": lambda x: torch.stack([c + 1 if c > 0 else c.exp() for c in x]),
    "relu": lambda x: torch.stack([c if c > 0 else 0 * c for c in x]),
    "identity": lambda x: x,
}


def mixer_logits(model, tokens, positions=None):
    """Logits (L, V) of one row from a model without norm and MLP, whatever its layers' mixers."""
    config, L = model.config, len(tokens)
    positions = list(range(L)) if positions is None else positions
    state = dict(model.named_parameters())

    def part(prefix):
        return {n[len(prefix) :]: v for n, v in state.items() if n.startswith(prefix)}

    twins = [TWINS[spec["name"]](spec, config) for spec in config.per_layer("position_encoding")]
    shared = part("model.position_encoding.")
    x = [twins[0].embed(state["model.embed_tokens.weight"][t], positions[i], shared) for i, t in enumerate(tokens)]
    for n, spec in enumerate(config.per_layer("mixer")):
        prefix = f"model.layers.{n}.self_attn."
        own = part(prefix + "position_encoding.") or shared
        if spec["name"] == "softmax":
            x = _layer(twins[n], part(prefix), own, x, positions, config, config.per_layer("logit_scale")[n])
        else:
            outs = MIXER_TWINS[spec["name"]](spec, twins[n], part(prefix), own, x, positions, config)
            x = [a + b for a, b in zip(x, outs, strict=True)]
    return torch.stack([state["lm_head.weight"] @ v for v in x])


def _head(weights, name, row, h, config):
    group = 1 if name in ("q_proj", "gate_up", "g_proj") else config.num_attention_heads // config.num_key_value_heads
    K = config.head_dim
    rows = slice(h // group * K, (h // group + 1) * K)
    bias = weights[f"{name}.bias"][rows] if f"{name}.bias" in weights else 0
    return weights[f"{name}.weight"][rows] @ row + bias


def linear(spec, twin, weights, p, x, positions, config):
    env, features, outs = Env(p, x, positions, config), FEATURES[spec["feature_map"]], [[] for _ in x]
    for h in range(config.num_attention_heads):
        q, k = ([features(_head(weights, name, row, h, config)) for row in x] for name in ("q_proj", "k_proj"))
        v = [twin.value(_head(weights, "v_proj", row, h, config), positions[j], env, h) for j, row in enumerate(x)]
        turned_q = [twin.query(row, positions[i], env, h) for i, row in enumerate(q)]
        turned_k = [twin.key(row, positions[j], env, h) for j, row in enumerate(k)]
        for i in range(len(x)):
            fade = [twin.bias(h, i, j, env).exp() for j in range(i + 1)]
            out = sum(fade[j] * (turned_q[i] @ turned_k[j]) * v[j] for j in range(i + 1))
            if spec["normalized"]:
                total = sum(fade[j] * (q[i] @ k[j]) for j in range(i + 1))
                out = out / (total if total > 1e-6 else 1e-6)
            else:
                out = out * config.head_dim**-0.5
            outs[i].append(twin.output(out, positions[i], env, h))
    return [weights["o_proj.weight"] @ torch.cat(heads) for heads in outs]


def gated_linear(spec, twin, weights, p, x, positions, config):
    K, outs = config.head_dim, [[] for _ in x]
    for h in range(config.num_attention_heads):
        S = torch.zeros(K, K, dtype=torch.float64)
        for t, row in enumerate(x):
            q, k, v = (_head(weights, name, row, h, config) for name in ("q_proj", "k_proj", "v_proj"))
            z = _head(weights, "gate_up", weights["gate_down.weight"] @ row, h, config)
            gate = (1 / (1 + (-z).exp())) ** (1 / spec["temperature"])
            S = gate[:, None] * S + torch.outer(k, v)
            o = q @ S * K**-0.5
            o = (o - o.mean()) / (((o - o.mean()) ** 2).mean() + config.norm_eps).sqrt()
            o = o * weights["o_norm.weight"] + weights["o_norm.bias"]
            if spec["output_gate"]:
                r = _head(weights, "g_proj", row, h, config)
                o = o * r / (1 + (-r).exp())
            outs[t].append(o)
    return [weights["o_proj.weight"] @ torch.cat(heads) for heads in outs]


def recurrence(spec, twin, weights, p, x, positions, config):
    A = torch.diag(weights["A"]) if spec["kind"] == "diagonal" else weights["A"]
    h, outs = ZERO * A[0], []
    for row in x:
        h = A @ h + weights["v_proj.weight"] @ row
        outs.append(weights["o_proj.weight"] @ h)
    return outs


MIXER_TWINS = {"linear": linear, "gated_linear": gated_linear, "recurrence": recurrence}
