"""Transformers' own progress bars and hints kept off the terminal."""

import contextlib


@contextlib.contextmanager
def without_bars():
    """For files that take a blink."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


@contextlib.contextmanager
def without_hints():
    """For what is checked, and told in our words."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
