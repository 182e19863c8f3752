"""Naive twins: each encoding once more, as loops over scalars in float64, written from its paper.

A twin overrides what its paper says: `embed`, `query`, `key`, `bias`, `value`, `output`. `env` gives it the layer: its
parameters `p` (by name), the layer's input `x[i]`, all content logits of the row `content(i, j)`, sizes, positions.
"""

import math

import torch

ZERO = torch.zeros((), dtype=torch.float64)


class Twin:
    def __init__(self, spec, config):
        self.spec, self.config = spec, config

    def embed(self, x, position, p):
        return x

    def query(self, q, position, env, h):
        return q

    def key(self, k, position, env, h):
        return k

    def value(self, v, position, env, h):
        return v

    def output(self, o, position, env, h):
        return o

    def bias(self, h, i, j, env):
        return ZERO


class Learned(Twin):
    def embed(self, x, position, p):
        return x + p["weight"][position]


class Sinusoidal(Twin):
    def embed(self, x, position, p):
        size = len(x)
        wave = []
        for c in range(size):
            angle = position / self.spec["base"] ** (2 * (c // 2) / size)
            wave.append(self.spec["scale"] * (math.sin(angle) if c % 2 == 0 else math.cos(angle)))
        return x + torch.tensor(wave, dtype=torch.float64)


class RoPE(Twin):
    def frequency(self, f, rotated, env):
        if self.spec.get("grid") == "linear":
            return (rotated // 2 - f) / (rotated // 2)
        return self.spec["base"] ** (-2 * f / rotated)

    def query(self, q, position, env, h):
        rotated = int(len(q) * self.spec["share"])
        half = rotated // 2
        out = list(q)
        for f in range(half):
            angle = position * self.frequency(f, rotated, env)
            a, b = q[f], q[f + half]
            out[f] = a * math.cos(angle) - b * math.sin(angle)
            out[f + half] = a * math.sin(angle) + b * math.cos(angle)
        return torch.stack(out)

    key = query


class DynamicNTK(RoPE):
    def frequency(self, f, rotated, env):
        original, factor = self.config.max_position_embeddings, self.spec["factor"]
        length = max(env.positions) + 1
        base = self.spec["base"]
        if length > original:
            base *= (factor * length / original - (factor - 1)) ** (rotated / (rotated - 2))
        return base ** (-2 * f / rotated)


class ALiBi(Twin):
    def slope(self, h, env):
        if self.spec["slopes"] == "learned":
            return env.p["log_slopes"][h].exp()
        heads = self.config.num_attention_heads
        if self.spec["slopes"] == "geometric":
            return 2 ** (-8 * (h + 1) / heads)
        power = 1
        while power * 2 <= heads:
            power *= 2
        if h < power:
            return 2 ** (-8 * (h + 1) / power)
        return 2 ** (-4 * (2 * (h - power) + 1) / power)

    def bias(self, h, i, j, env):
        return -self.slope(h, env) * (env.positions[i] - env.positions[j]) + ZERO


class T5(Twin):
    def bias(self, h, i, j, env):
        distance, buckets, far = env.positions[i] - env.positions[j], self.spec["buckets"], self.spec["max_distance"]
        exact = buckets // 2
        if distance < exact:
            bucket = distance
        else:
            bucket = exact + int(math.log(distance / exact) / math.log(far / exact) * (buckets - exact))
        return env.p["weight"][h, min(bucket, buckets - 1)]


class FIRE(Twin):
    def bias(self, h, i, j, env):
        c, threshold = env.p["c"].abs(), env.p["threshold"].abs()
        at, distance = env.positions[i], env.positions[i] - env.positions[j]
        reach = at if at > threshold else threshold
        x = (1 + c * distance).log() / (1 + c * reach).log()
        hidden = [max(w * x + b, ZERO) for w, b in zip(env.p["hidden.weight"][:, 0], env.p["hidden.bias"], strict=True)]
        return sum(w * v for w, v in zip(env.p["out.weight"][h], hidden, strict=True)) + env.p["out.bias"][h]


class ForgettingGate(Twin):
    def bias(self, h, i, j, env):
        total = ZERO
        for t in range(j + 1, i + 1):
            gate = 1 / (1 + (-(env.p["gate.weight"][h] @ env.x[t] + env.p["gate.bias"][h])).exp())
            total = total + gate.log()
        return total


class CoPE(Twin):
    def bias(self, h, i, j, env):
        position = ZERO
        for t in range(j, i + 1):
            position = position + 1 / (1 + (-env.content(h, i, t)).exp())
        largest = self.spec["max_position"] - 1
        position = position if position < largest else ZERO + largest
        low, high = math.floor(position), math.ceil(position)
        scale = self.config.head_dim**-0.5
        at = [env.q[h][i] @ env.p["weight"][n] * scale for n in (low, high)]
        return (1 - (position - low)) * at[0] + (position - low) * at[1]


TWINS = {
    "none": Twin,
    "learned": Learned,
    "sinusoidal": Sinusoidal,
    "rope": RoPE,
    "rope_dynamic_ntk": DynamicNTK,
    "alibi": ALiBi,
    "t5": T5,
    "fire": FIRE,
    "forgetting_gate": ForgettingGate,
    "cope": CoPE,
}


class Env:
    """What a twin may look at in one layer."""

    def __init__(self, p, x, positions, config):
        self.p, self.x, self.positions, self.config = p, x, positions, config
        self.q, self.k = {}, {}

    def content(self, h, i, j):
        return self.q[h][i] @ self.k[h][j] * self.config.head_dim**-0.5


def naive_logits(model, tokens, positions=None):
    """Logits (L, V) of one row of tokens from an attention-only model (no norm, no MLP), in loops."""
    config, L = model.config, len(tokens)
    positions = list(range(L)) if positions is None else positions
    state = {name: value for name, value in model.named_parameters()}
    part = lambda prefix: {n[len(prefix) :]: v for n, v in state.items() if n.startswith(prefix)}  # noqa: E731
    specs = config.per_layer("position_encoding")
    twins = [TWINS[spec["name"]](spec, config) for spec in specs]
    shared = part("model.position_encoding.")
    x = [state["model.embed_tokens.weight"][t] for t in tokens]
    x = [twins[0].embed(v, positions[i], shared) for i, v in enumerate(x)]
    for n in range(config.num_hidden_layers):
        prefix = f"model.layers.{n}.self_attn."
        own = part(prefix + "position_encoding.") or shared
        x = _layer(twins[n], part(prefix), own, x, positions, config)
    return torch.stack([state["lm_head.weight"] @ v for v in x])


def _layer(twin, weights, p, x, positions, config):
    env, L, K = Env(p, x, positions, config), len(x), config.head_dim
    group = config.num_attention_heads // config.num_key_value_heads
    outs = [[] for _ in range(L)]
    for h in range(config.num_attention_heads):
        g = h // group
        project = lambda name, row, head: weights[f"{name}.weight"][head * K : (head + 1) * K] @ row  # noqa: E731
        env.q[h] = [twin.query(project("q_proj", x[i], h), positions[i], env, h) for i in range(L)]
        env.k[h] = [twin.key(project("k_proj", x[j], g), positions[j], env, h) for j in range(L)]
        v = [twin.value(project("v_proj", x[j], g), positions[j], env, h) for j in range(L)]
        for i in range(L):
            logits = torch.stack([env.content(h, i, j) + twin.bias(h, i, j, env) for j in range(i + 1)])
            weights_i = logits.exp() / logits.exp().sum()
            outs[i].append(twin.output(sum(w * v[j] for j, w in enumerate(weights_i)), positions[i], env, h))
    return [x[i] + weights["o_proj.weight"] @ torch.cat(outs[i]) for i in range(L)]
