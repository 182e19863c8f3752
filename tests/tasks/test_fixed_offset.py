"""Study 1's task, against its drawing and exact figures."""

from itertools import product

import numpy as np
import pytest

from hf_posgen.tasks import IGNORE, Cell, build_task
from hf_posgen.tasks.core.bag_of_words import bag_of_words, mean_bag_of_words, measured_bag_of_words


def sampled(cell=None, **parameters):
    task = build_task({"name": "fixed_offset", **parameters})
    return task, *task.sample(np.random.default_rng(0), 500, cell or Cell(7, 3))


def test_last_query_as_drawn():
    _, tokens, labels = sampled()
    assert tokens.shape == (500, 8)
    assert (labels[:, :7] == IGNORE).all()
    assert (labels[:, 7] == tokens[:, 3]).all() and (tokens[:, 7] == tokens[:, 3]).all()


def test_every_query_as_drawn():
    task, tokens, labels = sampled(query="every")
    assert (tokens[:, 7] == task.pad_token_id).all()
    assert (labels[:, :4] == IGNORE).all()
    for place in range(4, 8):
        assert (labels[:, place] == tokens[:, place - 4]).all()


def test_anchor_token_moves_everything_by_one():
    task, tokens, labels = sampled(bos=True)
    assert (tokens[:, 0] == task.bos_token_id).all() and (labels[:, 8] == tokens[:, 4]).all()


def test_live_keys():
    task, tokens, labels = sampled(Cell(12, 3), live=4)
    symbols = tokens[:, :12] < 16
    assert (symbols.sum(1) == 4).all() and symbols[:, 8].all()
    assert (labels[:, 12] == tokens[:, 8]).all()
    elsewhere = symbols.mean(0)[np.arange(12) != 8]
    assert np.abs(elsewhere - 3 / 11).max() < 0.08
    assert task.baselines(Cell(12, 3)) == {"bag_of_words": bag_of_words(4, 16)}


def test_symbols_are_uniform():
    from scipy.stats import chisquare

    for symbols in (16, 100):
        _, tokens, _ = sampled(Cell(64, 3), symbols=symbols)
        assert chisquare(np.bincount(tokens[:, :64].ravel(), minlength=symbols)).pvalue > 1e-3


def test_splits_hold_lengths_apart():
    task = build_task(
        {"name": "fixed_offset", "min_length": 4, "max_length": 30, "held_out": "11-19", "test_lengths": [60]}
    )
    lengths = {split: [c.length for c in cells] for split, cells in task.splits().items() if cells}
    trained = [*range(4, 11), *range(20, 31)]
    assert lengths == {
        "train": trained,
        "validation": trained,
        "test": trained,
        "longer": [60],
        "between": list(range(11, 20)),
    }


@pytest.mark.parametrize("length, expected", [(16, 0.192), (48, 0.133), (1024, 0.077)])
def test_bag_of_words_at_known_lengths(length, expected):
    assert round(bag_of_words(length, 16), 3) == expected


@pytest.mark.parametrize("length, symbols", [(1, 3), (4, 2), (5, 3), (6, 4)])
def test_bag_of_words_by_enumeration(length, symbols):
    largest = [max(map(sequence.count, sequence)) for sequence in product(range(symbols), repeat=length)]
    assert abs(bag_of_words(length, symbols) - np.mean(largest) / length) < 1e-12


def test_mean_bag_of_words_is_the_mean():
    each = [bag_of_words(n, 16) for n in range(4, 41)]
    assert abs(mean_bag_of_words(4, 40, 16) - np.mean(each)) < 1e-12


def test_measured_bag_of_words_agrees_with_the_exact_one():
    task, tokens, labels = sampled(Cell(16, 3))
    rng = np.random.default_rng(1)
    tokens, labels = task.sample(rng, 20000, Cell(16, 3))
    exact = bag_of_words(16, 16)
    assert abs(measured_bag_of_words(tokens, labels, 16) - exact) < 4 * np.sqrt(exact / 20000)
