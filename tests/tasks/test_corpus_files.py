"""A user's own files: read as what they are, or refused in a sentence that says why; read again when they change."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import zipfile

import numpy as np
import pandas as pd
import pytest

from hf_posgen.tasks import Cell, build_task, examples
from hf_posgen.tasks.text.files import FORMATS, recognise

DOCUMENTS = [f'{i}: the cat, "so to say", saw document {i * i}.' for i in range(120)]


def as_csv(delimiter=","):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerows([["id", "text"], *enumerate(DOCUMENTS)])
    return out.getvalue()


JSON_LINES = "\n".join(json.dumps({"text": one}) for one in DOCUMENTS)
TEXT = "\n\n".join(DOCUMENTS)
CONTENT = {
    "text": TEXT,
    "json lines": JSON_LINES,
    "json array": json.dumps([{"text": one} for one in DOCUMENTS], indent=1),
    "csv": as_csv(),
    "tsv": as_csv("\t"),
}
COMPRESSED = {
    "": lambda raw: raw,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def text(path, **parameters):
    return build_task({"name": "text", "dataset": str(path), "length": 16, **parameters})


def zipped(raw):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("inside", raw)
    return out.getvalue()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "plain.txt"
    path.write_text(TEXT, encoding="utf-8")
    return text(path).fingerprint


@pytest.mark.parametrize("compression", COMPRESSED)
@pytest.mark.parametrize(
    ("content", "ending"),
    [("text", ".txt"), ("json lines", ".jsonl"), ("json array", ".json"), ("csv", ".csv"), ("tsv", ".tsv")],
)
def test_a_file_is_read_by_its_name(content, ending, compression, tmp_path, expected):
    path = tmp_path / f"corpus{ending}{compression}"
    path.write_bytes(COMPRESSED[compression](CONTENT[content].encode()))
    assert text(path).fingerprint == expected


@pytest.mark.parametrize("compression", ["", ".gz"])
@pytest.mark.parametrize("content", CONTENT)
def test_by_its_content_where_the_name_does_not_say(content, compression, tmp_path, expected):
    for name in ("corpus", "corpus.data"):
        path = tmp_path / f"{name}{compression}"
        path.write_bytes(COMPRESSED[compression](CONTENT[content].encode()))
        assert text(path).fingerprint == expected


def test_an_archive_of_one_file_and_parquet_of_any_name(tmp_path, expected):
    (tmp_path / "corpus.zip").write_bytes(zipped(JSON_LINES))
    pd.DataFrame({"text": DOCUMENTS}).to_parquet(tmp_path / "corpus.txt")
    assert text(tmp_path / "corpus.zip").fingerprint == text(tmp_path / "corpus.txt").fingerprint == expected


@pytest.mark.parametrize("content", [one for one in CONTENT if one != "text"])
@pytest.mark.parametrize("way", ["a file", "a folder", "a builder", "by line", "compressed"])
def test_records_are_not_read_as_plain_text(content, way, tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(CONTENT[content], encoding="utf-8")
    if way == "compressed":
        path = tmp_path / "other.txt.gz"
        path.write_bytes(gzip.compress(CONTENT[content].encode()))
    calls = {
        "a folder": lambda: text(tmp_path),
        "a builder": lambda: text("text", data_files=str(path)),
        "by line": lambda: text(path, sample_by="line"),
    }
    kind = "JSON" if content.startswith("json") else "a table"
    with pytest.raises(ValueError, match=f"would be read as plain text, and looks like {kind}: .* end in "):
        calls.get(way, lambda: text(path))()


@pytest.mark.parametrize(
    "line",
    ["It rained, and we left.", "{not json}", "[1] A note, with a comma.", "a,b,c", "x\ty", '"Well, no," he said.'],
)
def test_prose_is_no_record(line):
    assert recognise(f"{line}\n\nOne more, of another kind: with, more, commas.\n".encode()) is None
    assert recognise(b"") is recognise(TEXT.encode()) is None


@pytest.mark.parametrize("ending", [".txt", ".csv", ".jsonl", ""])
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda raw: raw.replace(b"cat", b"c\xfct", 1), r"is not UTF-8: byte 0xfc at \d+"),
        (lambda raw: raw + b"\n\n" + b"x" * 200_000 + b"\xff", r"is not UTF-8: byte 0xff at \d+"),
        (lambda raw: raw.decode().encode("utf-16"), "is not UTF-8: byte 0xff at 0"),
        (lambda raw: b"", r"is empty \(0 bytes\)"),
    ],
)
def test_what_is_no_text_is_named_with_its_cause(spoil, reason, ending, tmp_path):
    raw = CONTENT[{".csv": "csv", ".jsonl": "json lines"}.get(ending, "text")].encode()
    path = tmp_path / f"corpus{ending}"
    path.write_bytes(spoil(raw))
    with pytest.raises(ValueError, match=reason) as caught:
        text(path)
    assert "\n" not in str(caught.value) and "occurred while" not in str(caught.value)
    if "byte 0xf" in reason and r"\d" in reason:
        place = int(str(caught.value).rpartition("at ")[2].rstrip(")"))
        assert path.read_bytes()[place] in (0xFC, 0xFF)


def test_broken_compression_and_archives_that_must_be_unpacked(tmp_path):
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(JSON_LINES.encode())[:100])
    (tmp_path / "corpus.tar").write_bytes(b"x")
    with pytest.raises(ValueError, match="can't be decompressed"):
        text(tmp_path / "corpus.jsonl.gz")
    with pytest.raises(ValueError, match="is an archive: unpack it"):
        text(tmp_path / "corpus.tar")


@pytest.mark.parametrize("ending", [".txt", ".csv", ".jsonl"])
def test_a_byte_order_mark_is_no_token(ending, tmp_path, expected):
    path = tmp_path / f"corpus{ending}"
    path.write_text(CONTENT[{".txt": "text", ".csv": "csv", ".jsonl": "json lines"}[ending]], encoding="utf-8-sig")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert text(path).fingerprint == expected
    assert (
        text("text" if ending == ".txt" else ending[1:].removesuffix("l"), data_files=str(path)).fingerprint == expected
    )


def first_tokens(task):
    return examples(task, 0, "test", Cell(16, None), 0, 1)[0].tolist()


@pytest.mark.parametrize("way", ["edited", "replaced with the same time", "a folder gets a file"])
def test_a_corpus_that_changes_is_read_again(way, tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8")
    where = tmp_path if "folder" in way else path
    before, times = text(where), path.stat()
    tokens = first_tokens(before)
    if "folder" in way:
        (tmp_path / "more.txt").write_text(TEXT.upper(), encoding="utf-8")
    else:
        path.write_text(TEXT.replace("cat", "dog"), encoding="utf-8")
    if "same time" in way:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    after = text(where)
    assert after.fingerprint != before.fingerprint and first_tokens(after) != tokens
    with pytest.raises(ValueError, match="is not what it was"):
        text(where, fingerprint=before.fingerprint)


def test_another_working_directory_names_another_file(tmp_path, monkeypatch):
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "corpus.txt").write_text(TEXT.replace("cat", name), encoding="utf-8")
        monkeypatch.chdir(tmp_path / name)
        found += [text("corpus.txt").fingerprint, text("text", data_files="*.txt").fingerprint]
    assert found[0] == found[1] != found[2] == found[3]


def test_a_tokenizer_trained_anew_is_opened_anew(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8")
    found = []
    for order in (1, -1):
        letters = sorted(set(TEXT))[::order]
        tokenizer = Tokenizer(models.WordLevel({letter: i for i, letter in enumerate(letters)}, unk_token="."))
        tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
        PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(tmp_path / "letters")
        found.append(text(path, tokenizer=str(tmp_path / "letters")))
    assert found[0].fingerprint != found[1].fingerprint
    assert not np.array_equal(first_tokens(found[0]), first_tokens(found[1]))


def test_every_ending_names_a_builder_that_datasets_has():
    from datasets.packaged_modules import _PACKAGED_DATASETS_MODULES

    assert {builder for builder, _ in FORMATS.values()} <= set(_PACKAGED_DATASETS_MODULES)
