"""The files of a corpus: what format they hold, where they aren't UTF-8, and a key that changes with them."""

import bz2
import codecs
import csv
import glob
import gzip
import json
import lzma
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

FORMATS = {  # by the name's ending, after that of a compression: a builder of `datasets`, and its options
    ".json": ("json", {}),
    ".jsonl": ("json", {}),
    ".ndjson": ("json", {}),
    ".csv": ("csv", {}),
    ".tsv": ("csv", {"sep": "\t"}),
    ".parquet": ("parquet", {}),
    ".arrow": ("arrow", {}),
    ".txt": ("text", {}),
    ".text": ("text", {}),
}
BINARY = {b"PAR1": "parquet", b"ARROW1": "arrow"}  # unmistakable, whatever the name is
COMPRESSIONS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}  # those that Python itself opens
ZIP = b"PK\x03\x04"
SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip")
ARCHIVES = (".tar", ".tgz", ".7z", ".rar")
BEGINNING = 65536  # bytes that a format is recognised by
SHORT_COLUMN = re.compile(r"[A-Za-z_][\w-]*")  # one word: "Well, no" over lines with one comma each is prose
COLUMN = re.compile(r"[A-Za-z_][\w-]*( [\w-]+){0,2}")
LINES = 20  # of a beginning that may be CSV


def format_of(path: Path) -> tuple[str, dict]:
    """Return the builder of `datasets` that reads a file, and its options: by its name, where that doesn't say by its
    content. Raises `ValueError` for an empty file, and for one called text that holds something else."""
    if any(ending.lower() in ARCHIVES for ending in path.suffixes):
        raise ValueError(f"{path} is an archive: unpack it, and name the folder or its files")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty (0 bytes)")
    beginning = read_beginning(path)
    for magic, builder in BINARY.items():
        if beginning.startswith(magic):
            return builder, {}
    endings = [ending for ending in path.suffixes if ending.lower() not in SUFFIXES]
    named = FORMATS.get(endings[-1].lower()) if endings else None
    content = recognise(beginning)
    if named is None:
        return content or ("text", {})
    if named[0] == "text":
        refuse_records(path)
    return named


def refuse_records(path: Path) -> None:
    """Raise `ValueError` for a file read as text that holds JSON or a table: its brackets and commas would be trained
    on."""
    refuse_raw_records(read_beginning(path), str(path))


def refuse_raw_records(beginning: bytes, name: str) -> None:
    """Raise `ValueError` where text that begins so is JSON or a table. name: of the file or data set, for the sentence."""
    content = recognise(beginning)
    if content is not None:
        what, ending = {"json": ("JSON", ".jsonl"), "csv": ("a table", ".csv")}[content[0]]
        raise ValueError(
            f"{name} would be read as plain text, and looks like {what}: let the file's name end in {ending}, or set "
            f"dataset to {content[0]!r} and data_files to the file"
        )


def read_beginning(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed where Python can."""
    with path.open("rb") as file:
        raw = file.read(BEGINNING)
    opener = next((opener for magic, opener in COMPRESSIONS.items() if raw.startswith(magic)), None)
    try:
        if raw.startswith(ZIP):
            with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
                return file.read(BEGINNING)
        if opener is None:
            return raw
        with opener(path, "rb") as file:
            return file.read(BEGINNING)
    except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, IndexError) as error:
        raise ValueError(f"{path} can't be decompressed ({error})") from None


def recognise(beginning: bytes) -> tuple[str, dict] | None:
    """Return the builder and options of JSON or a table by how it begins; None for anything else."""
    text = codecs.getincrementaldecoder("utf-8-sig")("ignore").decode(beginning)
    whole = len(beginning) < BEGINNING
    lines = [line for line in (text.splitlines() if whole else text.splitlines()[:-1] or [text]) if line.strip()]
    if not lines:
        return None
    if _is_json(lines, text):
        return "json", {}
    delimiter = _delimiter(lines[:LINES])
    if delimiter is None:
        return None
    return "csv", {} if delimiter == "," else {"sep": delimiter}


def _is_json(lines: list[str], text: str) -> bool:
    """Whether every line is a JSON object, or the whole is an array of objects or an object of several lines."""
    try:
        return all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        start = "".join(text.split())[:3]
        return start.startswith(('[{"', '{"')) and (len(lines) > 1 or start.startswith("[{"))


def _delimiter(lines: list[str]) -> str | None:
    """Return what separates the columns of a table with a head; None for lines that are none.

    A table has two columns or more, the same number in all of three lines or more, and a head of short names that
    differ."""
    for delimiter in "\t,;":
        try:
            rows = list(csv.reader(lines, delimiter=delimiter, strict=True))
        except csv.Error:
            continue
        head = [name.strip() for name in rows[0]]
        name = COLUMN if len(head) > 2 else SHORT_COLUMN
        names = len(set(head)) == len(head) > 1 and all(map(name.fullmatch, head))
        if names and len(rows) >= 3 and all(len(row) == len(head) for row in rows):
            return delimiter
    return None


def not_utf8(paths: Iterator[Path]) -> str:
    """Return where the first of the files that is no UTF-8 breaks, in words; empty where all are."""
    for path in paths:
        decoder, place = codecs.getincrementaldecoder("utf-8")(), 0
        with path.open("rb") as file:
            raw = file.read(BEGINNING)
            if raw.startswith((*COMPRESSIONS, *BINARY, ZIP)):
                continue
            while raw:
                pending = len(decoder.getstate()[0])
                try:
                    decoder.decode(raw)
                except UnicodeDecodeError as error:
                    byte = error.object[error.start]
                    return f"{path} is not UTF-8: byte 0x{byte:02x} at {place - pending + error.start}"
                place += len(raw)
                raw = file.read(BEGINNING)
    return ""


def local_files(where: str | None) -> list[Path]:
    """Return the files that a path, a folder or a pattern names on this disk, in order; none for anything else."""
    if not where:
        return []
    path = Path(where).expanduser()
    if path.is_dir():
        return sorted(one for one in path.rglob("*") if one.is_file())
    if path.is_file():
        return [path]
    return sorted(Path(one) for one in glob.glob(str(path), recursive=True) if Path(one).is_file())


def state_of(*places: str | None) -> tuple:
    """Return a key that changes when a file that the places name is edited, replaced, added or taken away, or when another
    working directory makes them name other files."""
    files = [file.resolve() for place in places for file in local_files(place)]
    return tuple((str(file), *_stamp(file)) for file in files)


def _stamp(file: Path) -> tuple[int, int, int]:
    facts = file.stat()
    return facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
