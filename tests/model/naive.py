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


class ScaledRoPE(RoPE):
    """RoPE with the highest share p kept, then one rule per scaling."""

    amplitude = 1.0

    def plain(self, f, rotated):
        n = rotated // 2
        kept = f < int(self.spec.get("p", 1.0) * n)
        grid = (
            self.spec["top"] * (n - f) / n
            if self.spec.get("grid") == "linear"
            else self.spec["base"] ** (-2 * f / rotated)
        )
        return grid if kept else 0.0

    def frequency(self, f, rotated, env):
        return self.plain(f, rotated)

    def query(self, q, position, env, h):
        return self.amplitude * super().query(q, position, env, h)

    def key(self, k, position, env, h):
        return self.amplitude * RoPE.query(self, k, position, env, h)


class LinearRoPE(ScaledRoPE):
    def frequency(self, f, rotated, env):
        return self.plain(f, rotated) / self.spec["factor"]


class NTK(ScaledRoPE):
    def frequency(self, f, rotated, env):
        return (self.spec["base"] * self.spec["factor"] ** (rotated / (rotated - 2))) ** (-2 * f / rotated)


class YaRN(ScaledRoPE):
    def __init__(self, spec, config):
        super().__init__(spec, config)
        given = spec["attention_factor"]
        self.amplitude = 0.1 * math.log(spec["factor"]) + 1 if given is None else given

    def frequency(self, f, rotated, env):
        base, original = self.spec["base"], self.config.max_position_embeddings

        def edge(turns):
            return rotated * math.log(original / (2 * math.pi * turns)) / 2 / math.log(base)

        low, high = max(0, math.floor(edge(self.spec["beta_fast"]))), math.ceil(edge(self.spec["beta_slow"]))
        high = min(high, rotated - 1)
        share = min(1, max(0, (f - low) / max(high - low, 1e-3)))
        return (1 - share) * self.plain(f, rotated) + share * self.plain(f, rotated) / self.spec["factor"]


class Llama3(ScaledRoPE):
    def frequency(self, f, rotated, env):
        plain, original = self.plain(f, rotated), self.config.max_position_embeddings
        wavelength = 2 * math.pi / plain
        low, high = self.spec["low_freq_factor"], self.spec["high_freq_factor"]
        if wavelength < original / high:
            return plain
        if wavelength > original / low:
            return plain / self.spec["factor"]
        smooth = (original / wavelength - low) / (high - low)
        return (1 - smooth) * plain / self.spec["factor"] + smooth * plain


class LongRoPE(ScaledRoPE):
    def __init__(self, spec, config):
        super().__init__(spec, config)
        original, given = config.max_position_embeddings, spec["attention_factor"]
        formula = math.sqrt(1 + math.log(spec["factor"]) / math.log(original))
        self.amplitude = formula if given is None else given

    def frequency(self, f, rotated, env):
        beyond = max(env.positions) + 1 > self.config.max_position_embeddings
        factors = self.spec["long_factor" if beyond else "short_factor"]
        default = self.spec["factor"] if beyond else 1.0
        return self.plain(f, rotated) / (factors[f] if factors else default)


class XPos(ScaledRoPE):
    def __init__(self, spec, config):
        super().__init__(spec | {"share": 1.0}, config)

    def scaled(self, x, position, sign):
        half = len(x) // 2
        zeta = [(f / half + self.spec["gamma"]) / (1 + self.spec["gamma"]) for f in range(half)]
        steps = (position - self.spec["centre"]) / self.spec["scale_base"]
        return torch.stack([x[c] * zeta[c % half] ** (sign * steps) for c in range(len(x))])

    def query(self, q, position, env, h):
        return self.scaled(super().query(q, position, env, h), position, 1)

    def key(self, k, position, env, h):
        return self.scaled(RoPE.query(self, k, position, env, h), position, -1)


class RoVE(ScaledRoPE):
    def value(self, v, position, env, h):
        return RoPE.query(self, v, position, env, h)

    def output(self, o, position, env, h):
        return RoPE.query(self, o, -position, env, h)


class Clipped(Twin):
    def bias(self, h, i, j, env):
        return env.p["weight"][h, min(env.positions[i] - env.positions[j], self.spec["distances"] - 1)]


class KERPLE(Twin):
    def bias(self, h, i, j, env):
        distance, r1, raw = env.positions[i] - env.positions[j], env.p["raw_r1"][h].exp(), env.p["raw_r2"][h]
        if self.spec.get("form", "log") == "log":
            return -r1 * (1 + raw.exp() * distance).log()
        return -r1 * distance ** (2 / (1 + (-raw).exp())) if distance else ZERO


class Sandwich(Twin):
    def bias(self, h, i, j, env):
        distance, size = env.positions[i] - env.positions[j], self.spec["size"]
        waves = sum(math.cos(distance * self.spec["base"] ** (-2 * f / size)) for f in range(size // 2))
        return ZERO + waves * self.config.head_dim**-0.5


class CABLE(Twin):
    def bias(self, h, i, j, env):
        total = ZERO
        for t in range(j + 1, i + 1):
            total = total - (1 + (env.p["step.weight"][h] @ env.x[t] + env.p["step.bias"][h]).exp()).log()
        return total


class GRAPE(Twin):
    def bias(self, h, i, j, env):
        K, rate = self.config.head_dim, ZERO
        if self.spec["gates"] != "key":
            rate = rate + (1 + (env.p["v"][h] @ env.q[h][i] / K**0.5).exp()).log()
        if self.spec["gates"] != "query":
            rate = rate + (1 + (env.p["u"][h] @ env.k[h][j] / K**0.5).exp()).log()
        return (env.positions[j] - env.positions[i]) * env.p["log_rate"][h].exp() * rate


class SelectiveRoPE(Twin):
    """Token by token: the steps first, each a convolution over the tokens up to it, then their sum."""

    def query(self, q, position, env, h):
        half, i = len(q) // 2, env.positions.index(position)
        group = h // (self.config.num_attention_heads // self.config.num_key_value_heads)
        free = [env.p["up"] @ (env.p["down"] @ x) / (x @ x).sqrt() for x in env.x[: i + 1]]
        out = list(q)
        for f in range(half):
            c, angle = group * half + f, ZERO
            for t in range(i + 1):
                for n in range(min(self.spec["width"], t + 1)):
                    angle = angle + env.p["taps"][c, n] * free[t - n][c]
            angle = angle * self.spec["base"] ** (-2 * f / len(q))
            out[f] = q[f] * angle.cos() - q[f + half] * angle.sin()
            out[f + half] = q[f] * angle.sin() + q[f + half] * angle.cos()
        return torch.stack(out)

    key = query


class Shaw(Twin):
    def bias(self, h, i, j, env):
        distance = min(env.positions[i] - env.positions[j], self.spec["max_distance"])
        return env.q[h][i] @ env.p["weight"][distance] * self.config.head_dim**-0.5


class TransformerXL(Twin):
    def query(self, q, position, env, h):
        return q + env.p["u"][h]

    def bias(self, h, i, j, env):
        size, distance = self.config.hidden_size, env.positions[i] - env.positions[j]
        wave = []
        for c in range(size):
            angle = distance / self.spec["base"] ** (2 * (c // 2) / size)
            wave.append(math.sin(angle) if c % 2 == 0 else math.cos(angle))
        relative = env.p["weight"][h] @ torch.tensor(wave, dtype=torch.float64)
        content = env.q[h][i] - env.p["u"][h]
        return (content + env.p["v"][h]) @ relative * self.config.head_dim**-0.5


class DAPE(Twin):
    def bias(self, h, i, j, env):
        heads = range(self.config.num_attention_heads)
        own = {name.removeprefix("base."): value for name, value in env.p.items()}
        inner = Env(own, env.x, env.positions, self.config)
        base = [KERPLE({}, self.config).bias(g, i, j, inner) for g in heads]
        x = torch.stack([env.content(g, i, j) for g in heads] + base)
        hidden = env.p["hidden.weight"] @ x + env.p["hidden.bias"]
        hidden = torch.stack([v if v > 0 else 0.01 * v for v in hidden])
        return base[h] + env.p["out.weight"][h] @ hidden + env.p["out.bias"][h]


TWINS = {
    "none": Twin,
    "learned": Learned,
    "sinusoidal": Sinusoidal,
    "rope": ScaledRoPE,
    "rope_linear": LinearRoPE,
    "rope_ntk": NTK,
    "rope_dynamic_ntk": DynamicNTK,
    "rope_yarn": YaRN,
    "rope_longrope": LongRoPE,
    "rope_llama3": Llama3,
    "xpos": XPos,
    "rove": RoVE,
    "selective_rope": SelectiveRoPE,
    "alibi": ALiBi,
    "t5": T5,
    "clipped": Clipped,
    "kerple": KERPLE,
    "fire": FIRE,
    "sandwich": Sandwich,
    "shaw": Shaw,
    "transformer_xl": TransformerXL,
    "forgetting_gate": ForgettingGate,
    "cable": CABLE,
    "grape": GRAPE,
    "cope": CoPE,
    "dape": DAPE,
}


def scaled_logits(spec, p, logits, i, h):
    """A logit scale's twin: one row of logits, of the query with index i."""
    name = spec["name"]
    if name == "none":
        return logits
    if name == "fixed":
        return logits * spec["factor"]
    if name == "log_n":
        return logits * p["scale"][h] * math.log(i + 1)
    if name == "entropy":
        weights = logits.exp() / logits.exp().sum()
        entropy = -sum(w * w.log() for w in weights)
        if entropy <= 0.5:
            return logits
        beta = sum(c * entropy ** (4 - n) for n, c in enumerate([-0.037, 0.481, -2.3, 4.917, -1.791]))
        return logits * max(beta, 1 + ZERO)
    raise KeyError(name)


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

    def part(prefix):
        return {n[len(prefix) :]: v for n, v in state.items() if n.startswith(prefix)}

    specs = config.per_layer("position_encoding")
    twins = [TWINS[spec["name"]](spec, config) for spec in specs]
    shared = part("model.position_encoding.")
    x = [state["model.embed_tokens.weight"][t] for t in tokens]
    x = [twins[0].embed(v, positions[i], shared) for i, v in enumerate(x)]
    for n in range(config.num_hidden_layers):
        prefix = f"model.layers.{n}.self_attn."
        own = part(prefix + "position_encoding.") or shared
        x = _layer(twins[n], part(prefix), own, x, positions, config, config.per_layer("logit_scale")[n])
    return torch.stack([state["lm_head.weight"] @ v for v in x])


def _layer(twin, weights, p, x, positions, config, scale):
    env, L, K, heads = Env(p, x, positions, config), len(x), config.head_dim, config.num_attention_heads
    group = heads // config.num_key_value_heads
    outs, v = [[] for _ in range(L)], {}

    def project(name, row, head):
        return weights[f"{name}.weight"][head * K : (head + 1) * K] @ row

    for h in range(heads):
        env.q[h] = [twin.query(project("q_proj", x[i], h), positions[i], env, h) for i in range(L)]
        env.k[h] = [twin.key(project("k_proj", x[j], h // group), positions[j], env, h) for j in range(L)]
        v[h] = [twin.value(project("v_proj", x[j], h // group), positions[j], env, h) for j in range(L)]
    own = {n.removeprefix("logit_scale."): value for n, value in weights.items() if n.startswith("logit_scale.")}
    for h in range(heads):
        for i in range(L):
            logits = torch.stack([env.content(h, i, j) + twin.bias(h, i, j, env) for j in range(i + 1)])
            logits = scaled_logits(scale, own, logits, i, h)
            weights_i = logits.exp() / logits.exp().sum()
            outs[i].append(twin.output(sum(w * v[h][j] for j, w in enumerate(weights_i)), positions[i], env, h))
    return [x[i] + weights["o_proj.weight"] @ torch.cat(outs[i]) for i in range(L)]
