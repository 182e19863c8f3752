"""Named configurations of the delay copy.

Those with a paper's range are study 2's data sets as stated: D_RC is `full_*`, D_RS `selective_*`, D_RCS `mixed_*`;
`_clean` masks what can't be known (see the task's docstring). `anchor_*` are the small ones that the presets for a CPU
train on, with a token that begins every window.
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
    """Study 2's sizes, trained at d in low..high, evaluated at every other d up to 120."""
    below = f"0-{low - 1}," if low > 1 else "0," if low else ""
    return {**_STATED, "d_min": low, "d_max": high, "test_distances": f"{below}{high + 1}-120", **more}


def _mixture(s_min: int, s_max: int, asked: str) -> dict:
    """C at 15..25 and S at its own range; the distances evaluated are those that training doesn't draw for this kind."""
    low, high = (15, 25) if asked == "C" else (s_min, s_max)
    spec = _stated(15, 25, kinds="CS", asked=asked, s_min=s_min, s_max=s_max)
    return spec | {"test_distances": f"0-{low - 1},{high + 1}-120"}


def _anchor(low: int, high: int, distances: str, **more) -> dict:
    """Study 2 for a CPU: an anchor token, one R block between pairs, scored from place 12 on."""
    return {"bos": True, "skip": 12, "gap_blocks": 1, "d_min": low, "d_max": high, "test_distances": distances} | more


CONFIGS: dict[str, dict] = {
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
}
