"""Rows made up by formula, for the tests of reports only: nothing here was measured."""

from functools import cache

import numpy as np

from hf_posgen.metrics import functional

wilson = cache(functional.wilson)

FACTS = {
    "sampler": "sequential",
    "mixer": "softmax",
    "logit_scale": "none",
    "head_size": 64,
    "tokens_seen": 1_000_000,
    "lr": 1e-3,
    "step": 1000,
    "selected_on": "last step",
    "dtype": "float32",
    "revision": None,
    "ceiling": 1.0,
}


def with_intervals(values: dict, count: int) -> dict:
    out = {}
    for name, value in values.items():
        value = round(float(np.clip(value, 0, 1)) * count) / count
        low, high = wilson(value * count, count)
        out |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return out


def study1(
    seeds: int = 2, count: int = 500, arms=("none", "learned", "sinusoidal", "rope", "alibi"), unfit=("none", "alibi")
):
    """Unseen lengths at one distance. `unfit`: arms, or (arm, seed) pairs, that did not fit."""
    rows = []
    for arm in arms:
        for seed in range(seeds):
            rng, bad = np.random.default_rng([seed, len(arm)]), arm in unfit or (arm, seed) in unfit
            for split, lengths in (
                ("validation", range(4, 17)),
                ("test", range(4, 17)),
                ("longer", (17, 32, 48, 128, 512, 1024)),
            ):
                for length in lengths:
                    bag = 0.0625 + 0.6 / length**0.5 * 0.5
                    far = {
                        "rope": 1 / (1 + (length / (300 + 150 * seed)) ** 2),
                        "sinusoidal": 0.3 * (length == 48) + 0.07,
                    }.get(arm, 0.09)
                    value = bag if bad else 1.0 if length <= 16 else far
                    scores = with_intervals({"exact_match": value + (0 if value == 1 else rng.normal(0, 0.01))}, count)
                    scores |= {key.replace("exact_match", "token_accuracy"): v for key, v in scores.items()}
                    rows.append(
                        FACTS
                        | {
                            "run": f"study1-{arm}-seed{seed}",
                            "arm": arm,
                            "encoding": arm,
                            "panel": "study1",
                            "seed": seed,
                        }
                        | {"task": "fixed_offset", "split": split, "length": length, "distance": 3, "count": count}
                        | {"chance": 1 / 16, "baselines": {"bag_of_words": bag}, "fit": not bad, "bos": False}
                        | {
                            "parameters": 84_288 if arm == "learned" else 18_688,
                            "train_length": 16,
                            "train_distance": [3, 3],
                        }
                        | {"nll": 1 - value, **scores}
                    )
    return rows


REACH = {"none": 6.0, "rope": 0.7, "alibi": 4.0}  # tokens beyond the trained distances


def study2(
    seeds: int = 1, count: int = 200, arms=("none", "rope", "alibi"), unfit=(), distances=range(33), windows=(64, 128)
):
    """Unseen distances at a trained length, first and rest apart, and a longer window."""
    rows = []
    for arm in arms:
        for seed in range(seeds):
            rng, bad = np.random.default_rng([seed, len(arm), 2]), arm in unfit or (arm, seed) in unfit
            for length in windows:
                for distance in distances:
                    inside = 4 <= distance <= 8
                    near = "test" if inside else "farther" if distance > 8 else "nearer"
                    split = near if length == 64 else "longer" if inside else "both" if distance > 8 else None
                    if split is None:
                        continue
                    past = max(0, distance - 8, 1.5 * (4 - distance)) + rng.normal(0, 0.15) * (not inside)
                    first = 0.4 if bad else (1.0 if inside else np.exp(-((max(past, 0) / REACH.get(arm, 2)) ** 2)))
                    first = max(first * (1 if length == 64 else 0.9), 1 / 32)
                    rest = max(first**0.5 if arm != "rope" else first, 1 / 32)
                    values = {"exact_match": first * rest, "token_accuracy": (first + 3 * rest) / 4}
                    values |= {"first_accuracy": first, "rest_accuracy": rest}
                    row = (
                        FACTS
                        | {
                            "run": f"study2-{arm}-seed{seed}",
                            "arm": arm,
                            "encoding": arm,
                            "panel": "study2",
                            "seed": seed,
                        }
                        | {"task": "delay_copy", "split": split, "length": length, "distance": distance, "count": count}
                        | {
                            "chance": 1 / 32,
                            "baselines": {
                                "ngram_1": 0.5,
                                "ngram_2": 0.74,
                                "ngram_1_rest": 0.65,
                                "ngram_2_rest": 0.95,
                            },
                            "fit": not bad,
                        }
                        | {
                            "bos": True,
                            "parameters": 203_000,
                            "head_size": 32,
                            "train_length": 64,
                            "train_distance": [4, 8],
                        }
                        | {"nll": 1 - first, **with_intervals(values, count)}
                    )
                    rows += [row | {"split": "validation"}, row] if split == "test" else [row]
    return rows


def text(seeds: int = 3, arms=("learned", "rope", "alibi"), lengths=(64, 128, 256, 1024)):
    """Perplexity by length on text: no distances, no exact match."""
    worse = {"learned": 0.25, "rope": 0.12}  # nats per doubling of the trained length
    rows = []
    for arm in arms:
        for seed, length in ((seed, length) for seed in range(seeds) for length in lengths):
            nats = 2.2 + 0.02 * seed + worse.get(arm, 0.01) * np.log2(length / 64)
            values = {"perplexity": nats, "perplexity_low": nats - 0.05, "perplexity_high": nats + 0.05}
            row = FACTS | {"run": f"text-{arm}-seed{seed}", "arm": arm, "encoding": arm, "panel": "", "seed": seed}
            row |= {"task": "text", "split": "test" if length == 64 else "longer", "length": length, "distance": None}
            row |= {
                "count": 100,
                "chance": 1 / 15,
                "baselines": {"unigram_perplexity": 50.0},
                "fit": True,
                "bos": False,
            }
            row |= {"parameters": 132_096, "train_length": 64, "train_distance": None, "exact_match": None, "nll": nats}
            row |= {key: float(np.exp(value)) for key, value in values.items()}
            rows.append(row | with_intervals({"token_accuracy": 0.5 - 0.1 * nats / 3}, 100))
    return rows
