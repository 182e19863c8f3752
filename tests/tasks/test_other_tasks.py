"""Each remaining task against the drawing in its docstring, and what its baselines must be."""

import numpy as np

from hf_posgen.tasks import IGNORE, Cell, build_task, config_spec
from hf_posgen.tasks.core.cells import spread
from hf_posgen.tasks.core.ngram import ngram_baselines, ngram_guess


def sampled(name, cell, count=400, **parameters):
    task = build_task({"name": name, **parameters})
    return task, *task.sample(np.random.default_rng(0), count, cell)


def test_padded_copy_as_drawn():
    task, tokens, labels = sampled("unique_copy", Cell(12, 5), window=12, min_count=2, max_count=4)
    assert (tokens[:, :3] == task.control("BLANK")).all() and (tokens[:, 7] == task.control("SEP")).all()
    assert (tokens[:, 8:] == tokens[:, 3:7]).all() and (labels[:, 8:] == tokens[:, 8:]).all()
    assert (labels[:, :8] == IGNORE).all()
    assert all(len(set(row)) == 4 for row in tokens[:, 3:7].tolist())
    tight = build_task({"name": "unique_copy", "layout": "tight"})
    assert Cell(9, 5) in tight.cells("test") and tight.cells("both")[0] == Cell(27, 14)


def test_repeat_copy_as_drawn():
    task, tokens, labels = sampled("repeat_copy", Cell(16, 6), layout="tight", times=2)
    assert (tokens[:, 6:11] == tokens[:, :5]).all() and (tokens[:, 11:] == tokens[:, :5]).all()
    assert ((labels != IGNORE).sum(1) == 10).all() and tokens[:, :5].max() == 1


def test_stride_copy_as_drawn():
    _, tokens, labels = sampled("stride_copy", Cell(12, 9), layout="tight", stride=3)
    assert (tokens[:, 9:] == tokens[:, [0, 3, 6]]).all() and (labels[:, 9:] == tokens[:, 9:]).all()


def test_induction_as_drawn():
    task, tokens, labels = sampled("induction", Cell(10, 5), window=10, d_max=6)
    M = task.control("M")
    assert (tokens[:, 3] == M).all() and (tokens[:, 9] == M).all() and ((tokens == M).sum(1) == 2).all()
    assert (labels[:, 10] == tokens[:, 4]).all() and (labels[:, :10] == IGNORE).all()
    _, tokens, _ = sampled("induction", Cell(10, None), window=10, d_max=6)
    assert set((9 - 1 - (tokens[:, :9] == M).argmax(1)).tolist()) == set(range(1, 7))


def test_multi_query_recall_as_drawn():
    task, tokens, labels = sampled("multi_query_recall", Cell(19, 10), window=19, pairs=3)
    blank = task.control("BLANK")
    assert (tokens[:, :3] == blank).all() and (tokens[:, 9:13] == blank).all()
    pairs = tokens[:, 3:9].reshape(-1, 3, 2)
    asked = tokens[:, 13:].reshape(-1, 3, 2)
    for row, (known, wanted) in enumerate(zip(pairs.tolist(), asked.tolist(), strict=True)):
        assert sorted(known) == sorted(wanted) and len({k for k, _ in known}) == 3
        assert all(32 <= k < 64 and 0 <= v < 32 for k, v in known)
        assert labels[row, 14::2].tolist() == [v for _, v in wanted]
    assert (labels[:, :13] == IGNORE).all() and (labels[:, 13::2] == IGNORE).all()
    same = build_task(config_spec("multi_query_recall", "pairs_in_order"))
    tokens, _ = same.sample(np.random.default_rng(0), 5, Cell(64, 20))
    assert (tokens[:, 48:] == tokens[:, 28:44]).all()


def test_selective_copying_as_drawn():
    task, tokens, labels = sampled("selective_copying", Cell(15, 10), window=15, copied=3)
    assert (tokens[:, 2] < 16).all() and (tokens[:, :2] == task.control("NOISE")).all()
    assert (tokens[:, 11] == task.control("SEP")).all()
    for row in tokens.tolist():
        assert [t for t in row[:11] if t < 16] == row[12:]
    assert (labels[:, 12:] == tokens[:, 12:]).all() and (labels[:, :12] == IGNORE).all()
    middle = (tokens[:, 3:11] < 16).mean(0)
    assert np.abs(middle - 2 / 8).max() < 0.09


def test_cued_delay_as_drawn():
    task, tokens, labels = sampled("cued_delay", Cell(10, 4), window=10, d_max=5)
    D = task.control("D0")
    assert (tokens[:, 7:10] == [task.control("Q"), D, D + 4]).all()
    assert (labels[:, 10] == tokens[:, 2]).all() and (labels[:, :10] == IGNORE).all()
    echo, tokens, labels = sampled("cued_delay", Cell(10, 4), window=10, d_max=5, answer="cue")
    assert (labels[:, 10:] == [D, D + 4]).all() and tokens.shape[1] == 12 and echo.paste
    hops = build_task({"name": "cued_delay", "hops": 2, "symbols": 6, "window": 12, "d_max": 2})
    Q = hops.control("Q")
    D = hops.control("D0")
    assert hops.oracle([0, 0, 3, 1, 1, 1, 1, 1, 5, 1, Q, D, D + 1, 0]) == {13: 3}


def test_the_101_presets():
    """Trained to 50, 101 begins with a digit never seen there; with holes every digit was seen in its place."""
    plain = build_task(config_spec("cued_delay", "digits_0_50_asked_101"))
    assert plain.unseen_digits(101) == [0] and plain.unseen_digits(50) == []
    assert Cell(128, 101) in plain.cells("farther")
    holes = build_task(config_spec("cued_delay", "digits_holes_asked_101"))
    assert holes.unseen_digits(101) == [] and Cell(128, 101) in holes.cells("farther")
    assert all(holes.unseen_digits(d) == [] for d in range(110))
    assert holes.trained_distances.tolist() == [*range(51), 60, 70, 80, 90, 100]
    control = build_task(config_spec("cued_delay", "echo_of_the_cue"))
    assert control.splits() == plain.splits()


def test_linear_rnn_delay_as_drawn():
    task = build_task({"name": "linear_rnn_delay", "delay": 2, "min_length": 5, "max_length": 5})
    x, y = task.sample(np.random.default_rng(0), 3, Cell(5, 2))
    assert np.isnan(y[:, :2]).all() and (y[:, 2:] == x[:, :3, 0]).all()


def test_irregular_echo_as_drawn():
    task = build_task("irregular_echo")
    times = np.array([[0.0, 0.4, 1.7, 2.2, 3.9, 4.1]])
    assert task._sources(times, np.array([2])).tolist() == [[-1, -1, -1, 0, 2, 2]]
    inputs, targets = task.sample(np.random.default_rng(0), 2000, Cell(64, 6))
    assert abs(inputs[:, 1:, 1].mean() - 1) < 0.02 and (inputs[:, 0, 1] == 0).all() and (inputs[..., 2] == 6).all()
    assert abs(np.nanvar(targets) - 1) < 0.02
    assert task.baselines(Cell(64, 6))["event_count"] > 1.0, "counting events is worse than saying nothing"
    jitter = build_task({"name": "irregular_echo", "times": "jitter"})
    steps = jitter.sample(np.random.default_rng(0), 100, Cell(64, 6))[0][:, 1:, 1]
    assert steps.min() >= 0.5 and steps.max() <= 1.5
    mixed = task.sample(np.random.default_rng(0), 500, Cell(64, None))[0][:, 0, 2]
    assert set(mixed.tolist()) == {4, 5, 6, 7, 8}


def test_ngram_guess_is_the_latest_occurrence():
    tokens = np.array([[1, 2, 3, 1, 4, 1, 2, 9, 1, 2]])
    assert ngram_guess(tokens, 1).tolist() == [[-1, -1, -1, -1, 2, -1, 4, 3, -1, 2]]
    assert ngram_guess(tokens, 2).tolist() == [[-1, -1, -1, -1, -1, -1, -1, 3, -1, -1]]
    rng = np.random.default_rng(0)
    tokens = rng.integers(5, size=(20, 40))
    for n in (1, 2, 3):
        fast = ngram_guess(tokens, n)
        for row in range(20):
            for t in range(40):
                context = tokens[row, t - n : t].tolist()
                at = [s for s in range(n, t) if tokens[row, s - n : s].tolist() == context] if t >= n else []
                assert fast[row, t] == (tokens[row, at[-1]] if at else -1)


def test_copying_baselines_are_what_they_must_be():
    unique = build_task("unique_copy")
    baselines = unique.baselines(Cell(64, 9))
    assert baselines["ngram_1"] == 7 / 8 and baselines["bag_of_words"] == 1 / 8
    tokens = np.array([[7, 1, 2, 8, 1, 2]])
    labels = np.array([[IGNORE] * 4 + [1, 2]])
    found = ngram_baselines(tokens, labels)
    assert found == {f"ngram_{n}{end}": value for n in (1, 2) for end, value in (("", 0.5), ("_rest", 1.0))}


def test_a_baseline_skips_what_it_does_not_read():
    """Against a loop over the tokens that are read; 9 stands in the way and is never pasted."""
    rng = np.random.default_rng(1)
    tokens = rng.integers(4, size=(30, 25))
    tokens[rng.random(tokens.shape) < 0.4] = 9
    labels = np.where(np.arange(25) >= 15, tokens, IGNORE)
    labels[tokens == 9] = IGNORE
    for n in (1, 2):
        right = 0
        for row, answers in zip(tokens.tolist(), labels.tolist(), strict=True):
            for t in np.flatnonzero(np.array(answers) != IGNORE).tolist():
                read = [x for x in row[:t] if x != 9]
                guesses = []
                for m in (2, 1)[2 - n :]:
                    places = [s for s in range(m, len(read)) if read[s - m : s] == read[len(read) - m :]]
                    guesses += [read[places[-1]]] if places and len(read) >= m else []
                right += bool(guesses) and guesses[0] == answers[t]
        found = ngram_baselines(tokens, labels, tokens != 9)[f"ngram_{n}"]
        assert found == right / (labels != IGNORE).sum() > ngram_baselines(tokens, labels)[f"ngram_{n}"]


def test_spread_keeps_the_ends():
    assert spread(range(1, 6)) == (1, 2, 3, 4, 5)
    for values in (range(1, 255), range(16, 25), range(4081)):
        picked = spread(values)
        assert picked[0] == values[0] and picked[-1] == values[-1] and len(picked) <= 8
