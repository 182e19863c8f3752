"""The line that ends our text in a card, so that what others add below it is known and kept."""

import hashlib
import re

LINE = re.compile(r"^<!-- hf_posgen wrote what stands above \(sha256:([0-9a-f]{12})\);.*-->$", re.M)


def seal(text: str, notes: str = "") -> str:
    """Return a card's text (without metadata) with the line that ends it, and the notes of others below."""
    text = text.strip()
    line = (
        f"<!-- hf_posgen wrote what stands above (sha256:{_digest(text)}); what stands below is kept by every push. -->"
    )
    return "\n\n".join([text, line, notes] if notes else [text, line]) + "\n"


def notes_of(text: str, source: str) -> str:
    """Return what others wrote: what stands below our line, or all of a text that has none.

    source: what to call the card in the `ValueError` for one whose text above the line was edited."""
    line = LINE.search(text)
    if line is None:
        return text.strip()
    if line[1] != _digest(text[: line.start()].strip()):
        raise ValueError(
            f"{source} was edited above its line '{line[0]}': move what was added below that line, "
            "or the push would overwrite it"
        )
    return text[line.end() :].strip()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
