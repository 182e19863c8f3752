"""Named configurations of each task, for `load_task(name, config)` and the data sets on the Hub.

The first of a task is its default. Those of `delay_copy` with a paper's range are study 2's data sets as stated: D_RC is
`full_*`, D_RS `selective_*`, D_RCS `mixed_*`; `_clean` masks what can't be known (see the task's docstring). `anchor_*` are
the small ones that the presets for a CPU train on, with a token that begins every window.

Every task that a preset trains on stands here, so that its results name a data set that is published. A run says its task
by parameters, never by such a name: a name may be added at any time, what it stands for is never changed.
"""

_STATED = {
    "symbols": 128,
    "copied": 10,
    "window": 256,
    "unreachable": "scored",
    "cut_pastes": "scored",
    "test_windows": [512],
}
_CLEAN = {"unreachable": "masked", "cut_pastes": "masked"}


def _stated(low: int, high: int, **more) -> dict:
    """Study 2's sizes, trained at d in low..high, asked at every other d up to 120."""
    below = f"0-{low - 1}," if low > 1 else "0," if low else ""
    return {**_STATED, "d_min": low, "d_max": high, "test_distances": f"{below}{high + 1}-120", **more}


def _mixture(s_min: int, s_max: int, asked: str) -> dict:
    """C at 15..25 and S at its own range; the distances asked are those that training doesn't draw for this kind."""
    low, high = (15, 25) if asked == "C" else (s_min, s_max)
    spec = _stated(15, 25, kinds="CS", asked=asked, s_min=s_min, s_max=s_max)
    return spec | {"test_distances": f"0-{low - 1},{high + 1}-120"}


def _anchor(low: int, high: int, asked: str, **more) -> dict:
    """Study 2 for a CPU: an anchor token, one R block between pairs, scored from place 12 on."""
    return {"bos": True, "skip": 12, "gap_blocks": 1, "d_min": low, "d_max": high, "test_distances": asked} | more


def _tight(high: int, **more) -> dict:
    """Huang et al. (2410.02140): trained up to 50, tested from 101 to 150."""
    return {"layout": "tight", "min_count": 1, "max_count": high, "test_counts": "101,111,121,131,141,150"} | more


_STUDY1 = [17, 24, 32, 48, 128, 200, 512, 1024]  # the lengths that study 1 asks
_TO_256 = [17, 24, 48, 128, 256]

CONFIGS: dict[str, dict[str, dict]] = {
    "fixed_offset": {
        "last_k3": {},
        "last_k1": {"offset": 1},
        "last_k7": {"offset": 7, "min_length": 8},
        "every_k3": {"query": "every"},
        "last_k3_gap": {"max_length": 30, "held_out": "11-19", "test_lengths": [31, 48, 128, 512, 1024]},
        "last_k3_live4": {"live": 4},
        "last_k3_study1": {"test_lengths": _STUDY1},
        "last_k1_study1": {"offset": 1, "test_lengths": _STUDY1},
        "last_k7_study1": {"offset": 7, "min_length": 8, "test_lengths": _STUDY1},
        "last_k3_to_256": {"test_lengths": _TO_256},
        "every_k3_to_256": {"query": "every", "test_lengths": _TO_256},
        "every_k3_to_256_anchor": {"query": "every", "test_lengths": _TO_256, "bos": True},
        "every_k3_to_200": {"query": "every", "test_lengths": [17, 24, 32, 48, 128, 200]},
    },
    "delay_copy": {
        "small_4_8": {},
        "small_4_8_selective": {"kinds": "S"},
        "small_4_8_mixed": {"kinds": "CS"},
        "small_gap": {"window": 96, "d_min": 1, "d_max": 30, "held_out": "11-19"},
        "full_15_25": _stated(15, 25),
        "full_15_25_clean": _stated(15, 25, **_CLEAN),
        "selective_15_25": _stated(15, 25, kinds="S"),
        "selective_15_25_clean": _stated(15, 25, kinds="S", **_CLEAN),
        "selective_25_35": _stated(25, 35, kinds="S"),
        "selective_45_55": _stated(45, 55, kinds="S"),
        **{f"full_0_{high}": _stated(0, high) for high in (5, 10, 20, 30, 50)},
        "mixed_15_25_25_35_full": _mixture(25, 35, "C"),
        "mixed_15_25_25_35_selective": _mixture(25, 35, "S"),
        "mixed_15_25_45_55_full": _mixture(45, 55, "C"),
        "mixed_15_25_45_55_selective": _mixture(45, 55, "S"),
        "anchor_4_8": _anchor(4, 8, "0-3,9-24"),
        "anchor_4_8_selective": _anchor(4, 8, "0-3,9-24", kinds="S"),
        "anchor_4_8_to_32": _anchor(4, 8, "0-3,9-14,16,18,20,24,32"),
        **{f"anchor_0_{high}": _anchor(0, high, f"{high + 1}-28") for high in (1, 2, 4, 8)},
    },
    "cued_delay": {
        "digits_0_31": {},
        "digits_0_50_asked_101": {"window": 128, "digits": 3, "d_max": 50, "test_distances": "51-59,75,99-101,110"},
        "digits_holes_asked_101": {  # trained at 0..50, 60, 70, 80, 90, 100: every digit of 101 in its place
            "window": 128,
            "digits": 3,
            "d_max": 100,
            "held_out": "51-59,61-69,71-79,81-89,91-99",
            "test_distances": "101-109",
        },
        "echo_of_the_cue": {
            "window": 128,
            "digits": 3,
            "d_max": 50,
            "test_distances": "51-59,75,99-101,110",
            "answer": "cue",
        },
        "two_hops": {"hops": 2, "symbols": 8},
    },
    "unique_copy": {
        "padded_4_12": {},
        "tight_4_12": {"layout": "tight"},
        "tight_1_50": _tight(50, symbols=160),
        "tight_4_12_coupled": {"layout": "tight", "positions": "coupled"},
    },
    "repeat_copy": {
        "padded_4_12": {},
        "tight_4_12": {"layout": "tight"},
        "twice_4_12": {"times": 2},
        "tight_1_50": _tight(50),
        "tight_4_12_coupled": {"layout": "tight", "positions": "coupled"},
    },
    "stride_copy": {
        "padded_stride_2": {},
        **{f"tight_1_50_stride_{c}": _tight(50, stride=c) for c in (1, 2, 3)},
    },
    "induction": {
        "small_64": {},
        "paper_256": {"window": 256, "shorter_windows": [], "d_max": 254, "test_windows": [512, 1024, 2048]},
    },
    "multi_query_recall": {
        "small_64": {},
        "pairs_in_order": {"order": "same"},
        "wide_256": {"window": 256, "pairs": 16},
    },
    "selective_copying": {
        "small_64": {},
        "paper_4096": {"window": 4096, "copied": 16, "d_max": 4080, "test_windows": [8192]},
    },
    "linear_rnn_delay": {"delay_3": {}, "delay_7": {"delay": 7}},
    "irregular_echo": {"poisson_4_8": {}, "jitter_4_8": {"times": "jitter"}},
}
