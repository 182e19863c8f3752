"""Transformers' own progress bars, for files that take a blink, kept off the terminal."""

import contextlib


@contextlib.contextmanager
def without_bars():
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
