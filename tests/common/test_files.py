"""Small files: strict JSON, whole or not at all."""

import pytest

from hf_posgen.common.files import finite, read_rows, to_json, write_rows


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize(
    ("wrap", "where"),
    [
        (lambda x: {"nll": x}, "nll"),
        (lambda x: {"baselines": {"ngram_1": x}}, "baselines.ngram_1"),
        (lambda x: {"positions": [{"nats": 1.0}, {"nats": x}]}, "positions.1.nats"),
        (lambda x: {"pair": (0.0, x)}, "pair.1"),
    ],
)
def test_a_row_that_json_cannot_hold_is_refused_by_its_place(wrap, where, tmp_path, bad):
    file = tmp_path / "results.jsonl"
    write_rows(file, [{"nll": 1.0}])
    with pytest.raises(ValueError, match=f"^{where} is -?(nan|inf), which JSON can't hold"):
        write_rows(file, [{"nll": 2.0}, wrap(bad)])
    assert read_rows(file) == [{"nll": 1.0}], "the file there is whole"
    with pytest.raises(ValueError, match=where):
        to_json(wrap(bad), indent=1)
    assert to_json(finite(wrap(bad))) == to_json(finite(wrap(None)))


def test_older_files_with_nan_are_read_without(tmp_path):
    (tmp_path / "old.jsonl").write_text('{"nll": NaN, "perplexity": Infinity, "length": 4}\n')
    assert read_rows(tmp_path / "old.jsonl") == [{"nll": None, "perplexity": None, "length": 4}]
