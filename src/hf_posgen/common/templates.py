"""Texts rendered from Jinja templates that lie in a package."""

from collections.abc import Callable
from importlib.resources import files


def render_template(package: str, template: str, facts: dict, filters: dict[str, Callable] | None = None) -> str:
    """Return the text of a template, ending with one newline.

    A name that the template uses and `facts` lacks is an error, never an empty place in the text."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    environment.filters.update(filters or {})
    text = files(package).joinpath(template).read_text(encoding="utf-8")
    return environment.from_string(text).render(facts).rstrip() + "\n"
