"""A corpus opened by `datasets`: a file, a folder, a data set of the Hub, or a builder with its files."""

import contextlib
import hashlib
import sys
from functools import lru_cache
from pathlib import Path

from .files import format_of, local_files, not_utf8, refuse_raw_records, refuse_records, state_of

FIRST = 20  # documents of a text that are looked at


def prepared(dataset: str, config: str | None, data_files: str | None, sample_by: str):
    """Return the builder of a corpus with its data on disk; one that was prepared before while its files are what they
    were.

    dataset: a file, a folder, a builder's name or a Hub id. Raises `ValueError`, one sentence each, for what can't be
    opened or read, and for JSON or tables that would be read as text.
    """
    return _prepared(dataset, config, data_files, sample_by, state_of(dataset, data_files))


@lru_cache(maxsize=4)
def _prepared(dataset: str, config: str | None, data_files: str | None, sample_by: str, state: tuple):
    path, options = dataset, {"name": config, "data_files": data_files}
    file = Path(dataset).expanduser()
    if file.is_file():
        path, more = format_of(file)
        options |= more | {"data_files": str(file)}
    try:
        builder = _opened(path, options, sample_by, state)
        is_text = hasattr(builder.config, "sample_by")
        if is_text:
            for one in _files_of(builder):
                refuse_records(one)
        with bars_for_a_terminal():
            builder.download_and_prepare()
    except Exception as error:  # the Hub, each format and the file system have errors of their own
        reason = not_utf8(_text_files(dataset, data_files)) or _cause(error)
        raise ValueError(f"the corpus {dataset!r} can't be opened ({reason})") from error
    if is_text:
        _refuse_raw_documents(builder, dataset)
    return builder


def _opened(path: str, options: dict, sample_by: str, state: tuple):
    """Return the builder. Its cache belongs to the state of its files, of which `datasets` looks at the time alone."""
    import datasets

    if state:
        digest = hashlib.sha256(repr(state).encode()).hexdigest()[:16]
        options = options | {"cache_dir": str(Path(datasets.config.HF_DATASETS_CACHE) / "hf_posgen_corpora" / digest)}
    builder = datasets.load_dataset_builder(path, **options)
    if getattr(builder.config, "encoding", "") == "utf-8":
        options["encoding"] = "utf-8-sig"  # a byte order mark at the beginning of a file is no text
    if hasattr(builder.config, "sample_by"):
        options["sample_by"] = sample_by
    return datasets.load_dataset_builder(path, **options)


def _files_of(builder) -> list[Path]:
    """Return the files on this disk that a builder reads."""
    named = [Path(file) for files in (builder.config.data_files or {}).values() for file in files]
    return [file for file in named if file.is_file()]


def _text_files(*places: str | None) -> list[Path]:
    return [file for place in places for file in local_files(place)]


def _refuse_raw_documents(builder, dataset: str) -> None:
    """Raise `ValueError` where the first documents, read as text, are JSON or a table: of files that lie elsewhere, or that
    only `datasets` can decompress."""
    split = next(iter(builder.info.splits))
    first = builder.as_dataset(split=split)[:FIRST]["text"]
    refuse_raw_records("\n".join(first).encode(), dataset)


def _cause(error: BaseException) -> str:
    """Return what went wrong at first: `datasets` wraps errors in others that say nothing."""
    while error.__cause__ is not None or (error.__context__ is not None and not error.__suppress_context__):
        inner = error.__cause__ or error.__context__
        if not str(inner).strip():
            break
        error = inner
    return " ".join(str(error).split())[:300]


@contextlib.contextmanager
def bars_for_a_terminal():
    """Show progress bars of `datasets` only where somebody can see them move."""
    import datasets

    hide = not sys.stderr.isatty() and not datasets.are_progress_bars_disabled()
    if hide:
        datasets.disable_progress_bars()
    try:
        yield
    finally:
        if hide:
            datasets.enable_progress_bars()
