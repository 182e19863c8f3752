"""The parsers of the command line. Nothing heavy is imported here, so that --help answers at once."""

import dataclasses
import re
import sys
from argparse import SUPPRESS
from typing import Literal, get_origin

from jsonargparse import ArgumentParser, DefaultHelpFormatter

from ..common.names import nearest
from ..run.schema import EvaluationConfig, TrainConfig, model_fields

PLAIN = {
    "int": int,
    "int | None": int | None,
    "float": float,
    "float | int": float,
    "float | int | None": float | None,
    "str": str,
    "bool": bool,
}
WANTED = {"int": "a whole number", "float": "a number", "bool": "true or false"}


class UsageError(ValueError):
    """What was typed can't be; the message says why in one sentence."""


class Help(DefaultHelpFormatter):
    """Our sentences name the defaults and types that matter; jsonargparse would add "(default: null)" to each."""

    def _get_help_string(self, action):
        return action.help


class Parser(ArgumentParser):
    """Raises `UsageError` with the nearest option that exists, where argparse would print its usage and leave."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options, exit_on_error=False, default_env=False, formatter_class=Help)

    def parse_args(self, args=None, *rest, **options):
        """Parse what was typed; an option may be written with dashes or underscores, whichever its help shows."""
        return super().parse_args([self.as_known(argument) for argument in args or ()], *rest, **options)

    def as_known(self, argument: str) -> str:
        """Return an argument with its option, if it is one, as the parser knows it."""
        option, equals, value = argument.partition("=")
        known = {joined(one): one for action in self._actions for one in action.option_strings if one.startswith("--")}
        return known.get(joined(option), option) + equals + value if option.startswith("--") else argument

    def error(self, message, ex=None):
        raise UsageError(self.sentence(str(message)))

    def sentence(self, message: str) -> str:
        if "unrecognized arguments:" in message:
            given = message.split("unrecognized arguments:")[1].split()[0].split("=")[0]
            options = [option for action in self._actions for option in action.option_strings]
            near = nearest(given, options)
            if not given.startswith("-"):
                return f"{given!r} is one argument too many (see {self.prog} --help)"
            return f"unknown option {given}" + (f"; did you mean {near}?" if near else f" (see {self.prog} --help)")
        if needed := re.search(r"arguments are required: (.*)", message):
            return f"{self.prog} needs {', '.join(self._typed(name) for name in needed[1].split(', '))}"
        wrong = re.search(r'Parser key "(.+?)":.*Expected an? <class \'(\w+)\'>\. Got value: (.*)', message, re.DOTALL)
        if wrong:
            return f"--{wrong[1]} is {wrong[3]!r}; it must be {WANTED.get(wrong[2], wrong[2])}"
        return " ".join(message.replace('Parser key "', '"--').split())

    def _typed(self, name: str) -> str:
        """An argument as it is typed."""
        found = next((action for action in self._actions if action.dest == name), None)
        return found.option_strings[-1] if found is not None and found.option_strings else name


def joined(option: str) -> str:
    """Return an option's words joined by underscores."""
    return option.lstrip("-").replace("-", "_")


def names(text: str | list[str]) -> list[str]:
    """Names with commas between, in brackets or not; a list is one already (the parser checks what it parsed)."""
    if isinstance(text, list):
        return text
    return [name.strip() for name in text.strip("[]").split(",") if name.strip()]


def run_options(parser: Parser) -> None:
    """Every key of a run as an option; what is not given stays as the file has it."""
    from ..run.schema import COMPONENTS

    run = parser.add_argument_group("run")
    run.add_argument("--seed", type=int, default=SUPPRESS, help="of weights, data and dropout (default: 0)")
    run.add_argument("--arm", type=str, default=SUPPRESS, help="the run's name among its siblings")
    run.add_argument("--panel", type=str, default=SUPPRESS, help="the study it belongs to")
    run.add_argument(
        "--imports", type=names, default=SUPPRESS, help="modules that register encodings of your own, by name"
    )
    run.add_argument("--task", type=str, default=SUPPRESS, help="a task's name; --task.KEY sets a parameter of it")
    for section, cls in (("train", TrainConfig), ("evaluation", EvaluationConfig)):
        group = parser.add_argument_group(section)
        for field in dataclasses.fields(cls):
            kind = names if isinstance(field.default, tuple) else field.type
            kind = str if get_origin(kind) is Literal else kind
            shown = ", ".join(field.default) if isinstance(field.default, tuple) else field.default
            text = f"{field.metadata['help']} (default: {shown})"
            group.add_argument(f"--{section}.{field.name}", type=kind, default=SUPPRESS, help=text)
    group = parser.add_argument_group("model: fields of PosGenConfig")
    for name, (kind, default) in model_fields().items():
        shown = "what the task needs" if name == "max_position_embeddings" else default
        if name in COMPONENTS:
            text = f"a name; --model.{name}.KEY sets a hyper-parameter of it (default: {shown})"
            group.add_argument(f"--model.{name}", type=str, default=SUPPRESS, help=text)
        else:
            group.add_argument(f"--model.{name}", type=PLAIN[kind], default=SUPPRESS, help=f"(default: {shown})")


def spec_options(arguments: list[str], specs) -> tuple[list[str], list[tuple[str, str]]]:
    """Take the options of specs, --task delay_copy or --task.offset 7 or --task.offset=7, out of the arguments: their
    keys depend on the name, so they are checked where the spec is resolved. Raises `UsageError` for one without a value."""
    rest, changes, waiting = [], [], list(arguments)
    while waiting:
        argument = waiting.pop(0)
        name, equals, value = argument.partition("=")
        key = name.removeprefix("--").replace("-", "_")
        if not name.startswith("--") or not any(key == spec or key.startswith(f"{spec}.") for spec in specs):
            rest.append(argument)
            continue
        if not equals and (not waiting or waiting[0].startswith("--")):
            raise UsageError(f"{argument} needs a value")
        changes.append((key, value if equals else waiting.pop(0)))
    return rest, changes


def main_help(commands: dict[str, str]) -> str:
    width = max(map(len, commands))
    lines = "\n".join(f"  {name:{width}}  {text}" for name, text in commands.items())
    return (
        "usage: posgen COMMAND ...\n\nMeasure whether positional encodings generalise to unseen lengths and distances."
        f"\n\ncommands:\n{lines}\n\nposgen COMMAND --help says more; posgen --version prints the version."
    )


def say_error(text) -> None:
    print(f"posgen: {' '.join(str(text).split())}", file=sys.stderr)


def parser_of(command, name: str | None = None, **options) -> Parser:
    """The parser of a command: a function whose docstring is its help."""
    return Parser(prog=f"posgen {name or command.__name__}", description=command.__doc__, **options)


def register() -> None:
    """What importing the package does elsewhere: a command does it when it needs models."""
    from .. import register_auto_classes

    register_auto_classes()
