"""Names that a user chose, where they meet a format that reads some characters as its own."""

import html
import re


def for_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, in a table's cell too: one line, its own marks escaped."""
    text = re.sub(r"\s*[\r\n]+\s*", " ", str(text)).replace("\\", "\\\\")
    text = re.sub(r"([|`*~$]|(?<!\w)_|_(?!\w))", r"\\\1", text)
    return html.escape(text, quote=False)


def for_figure(text: str) -> str:
    """Return text that matplotlib draws as it is: dollars start no formula, and a leading underscore hides no entry of a
    legend."""
    text = str(text).replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text
