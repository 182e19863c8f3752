"""The command line: `posgen`, `python -m hf_posgen` and the scripts. One sentence per error; exit code 2 for usage, 1 for
failure. Nothing heavy is imported before the arguments are parsed."""

import os
import sys
import warnings

from ..common.names import unknown
from .commands import analyze, evaluate, report, show_list, sweep, train
from .hub_commands import convert, data, push
from .lists import LISTS
from .parser import main_help, say_error

__all__ = ["COMMANDS", "LISTS", "main"]

COMMANDS = {
    "train": train,
    "evaluate": evaluate,
    "sweep": sweep,
    "analyze": analyze,
    "report": report,
    "push": push,
    "data": data,
    "convert": convert,
    "list": show_list,
}


def main(arguments: list[str] | None = None) -> None:
    """Run a command."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that isn't UTF-8 shows what it can
    warnings.showwarning = lambda message, *_: say_error(f"warning: {message}")
    try:
        if arguments[:1] in ([], ["--help"], ["-h"]):
            print(main_help({name: command.__doc__ for name, command in COMMANDS.items()}))
        elif arguments[0] == "--version":
            from .. import __version__

            print(__version__)
        elif arguments[0] not in COMMANDS:
            raise unknown("command", arguments[0], COMMANDS)
        else:
            COMMANDS[arguments[0]](arguments[1:])
    except KeyboardInterrupt:
        _leave("interrupted; the same command goes on from the last saved state", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except (ValueError, FileExistsError) as error:
        _leave(error, 2)
    except Exception as error:
        _leave(error, 143 if type(error).__name__ == "Terminated" else 1)


def _leave(error, code: int):
    if os.environ.get("POSGEN_DEBUG") and isinstance(error, Exception):
        raise error
    say_error(str(error) or type(error).__name__)
    raise SystemExit(code)
