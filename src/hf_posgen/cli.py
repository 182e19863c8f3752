"""The command line. Nothing heavy is imported before a command runs, so that --help answers at once."""

import argparse
import os
import sys
from pathlib import Path

COMMANDS = {
    "train": "train one run from a YAML file",
    "evaluate": "measure a run folder again",
    "sweep": "train, evaluate and report many runs",
    "report": "make a report from the rows of run or sweep folders",
    "push": "publish a run folder on the Hub",
    "data": "export a task as a data set, or publish one",
    "list": "what there is: encodings, tasks, samplers, scales, mixers, presets",
}


class Parser(argparse.ArgumentParser):
    """One sentence per error, with the nearest known option, and exit code 2."""

    def error(self, message: str):
        if message.startswith("unrecognized arguments:"):
            import difflib

            known = [option for action in self._actions for option in action.option_strings]
            given = message.split(":", 1)[1].split()[0]
            near = difflib.get_close_matches(given, known, n=1)
            message = f"unknown option {given}" + (f"; did you mean {near[0]}?" if near else "")
        print(f"posgen: {message}", file=sys.stderr)
        raise SystemExit(2)


def parser() -> Parser:
    main = Parser(
        prog="posgen", description="Measure whether positional encodings generalise to unseen lengths and distances."
    )
    main.add_argument("--version", action="store_true", help="print the version")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    add = {
        name: commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        for name, text in COMMANDS.items()
    }
    add["train"].add_argument("run", nargs="?", help="run.yaml; dotted flags change it, as in --train.steps 200")
    add["train"].add_argument("--out", required=True, help="the run folder; an unfinished one goes on")
    add["evaluate"].add_argument("folder", help="a run folder")
    add["evaluate"].add_argument("--count", type=int, help="sequences per cell")
    add["evaluate"].add_argument("--splits", nargs="+", help="which splits (default: the run's)")
    add["sweep"].add_argument("sweep", help="a preset's name or a YAML file")
    add["sweep"].add_argument("--out", required=True, help="the sweep's folder; finished runs in it are kept")
    add["sweep"].add_argument("--workers", type=int, help="runs at a time (default: one per core)")
    add["sweep"].add_argument("--dry-run", action="store_true", help="print the commands and do nothing")
    add["report"].add_argument("folders", nargs="+", help="run or sweep folders")
    add["report"].add_argument("-o", "--out", required=True, help="where to write it")
    add["push"].add_argument("run", help="a run folder")
    add["push"].add_argument("--repo-id", required=True, help="owner/name on the Hub")
    add["push"].add_argument("--private", action="store_true", help="make a new repository private")
    add["push"].add_argument("--revision", help="a branch, made if there is none")
    add["push"].add_argument("--create-pr", action="store_true", help="open a pull request")
    data = add["data"].add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    export = data.add_parser("export", help="write a folder that load_dataset opens", allow_abbrev=False)
    export.add_argument("task")
    export.add_argument("folder")
    export.add_argument("--configs", nargs="+", help="which named configurations (default: all)")
    export.add_argument("--count", type=int, default=1000, help="sequences per cell of the evaluation splits")
    export.add_argument("--train-count", type=int, default=10000, help="sequences per cell of train")
    export.add_argument("--seed", type=int, default=0)
    publish = data.add_parser("push", help="publish an exported folder", allow_abbrev=False)
    publish.add_argument("folder")
    publish.add_argument("--repo-id", required=True)
    publish.add_argument("--private", action="store_true")
    add["list"].add_argument("what", choices=sorted(LISTS), help="which registry")
    return main


def dotted_flags(arguments: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Take --a.b value and --a.b=value out of the arguments; files are read before them, wherever they stand."""
    rest, changes, waiting = [], [], list(arguments)
    while waiting:
        argument = waiting.pop(0)
        name, equals, value = argument.partition("=")
        plain = argument in ("--seed", "--arm")
        if argument.startswith("--") and ("." in name or plain):
            if not equals and not waiting:
                raise ValueError(f"{argument} needs a value")
            changes.append((name.removeprefix("--"), value if equals else waiting.pop(0)))
        else:
            rest.append(argument)
    return rest, changes


def run_train(options, changes) -> None:
    from .run_config import build_run, override, read_yaml
    from .training import train

    tree = read_yaml(options.run) if options.run else {}
    for key, value in changes:
        tree = override(tree, key, value)
    print(f"Run folder: {train(build_run(tree), options.out)}")


def run_evaluate(options, _) -> None:
    from .evaluation import save_evaluation
    from .report import summary_tables

    rows = save_evaluation(options.folder, count=options.count, splits=options.splits)
    print(summary_tables(rows))


def run_sweep(options, _) -> None:
    from .sweep import commands, points, print_outcome, read_sweep, sweep

    out = Path(options.out)
    if options.dry_run:
        print("\n".join(commands(points(read_sweep(options.sweep)), out)))
        return
    rows, paths, failures = sweep(options.sweep, out, workers=options.workers)
    print_outcome(out, rows, paths, failures)
    if failures:
        raise RuntimeError(f"{len(failures)} run{'s' if len(failures) > 1 else ''} of the sweep failed")


def run_report(options, _) -> None:
    from .report import collect_rows, report, summary_tables

    rows = collect_rows(options.folders)
    paths = report(rows, options.out)
    print(summary_tables(rows))
    print(f"\nReport: {paths.markdown}")


def run_push(options, _) -> None:
    from .hub import push

    print(
        push(
            options.run,
            options.repo_id,
            private=options.private,
            revision=options.revision,
            create_pr=options.create_pr,
        )
    )


def run_data(options, _) -> None:
    if options.action == "push":
        from .hub import push_dataset

        print(push_dataset(options.folder, options.repo_id, private=options.private))
        return
    from .tasks import export_task

    sizes = {"count": options.count, "train_count": options.train_count, "seed": options.seed}
    print(export_task(options.task, options.folder, configs=options.configs, **sizes))


def run_list(options, _) -> None:
    import pandas as pd

    print(pd.DataFrame(LISTS[options.what]()).to_markdown(index=False))


def _encodings():
    from .model.capabilities import capabilities

    return capabilities()


def _components(module: str, registry: str):
    import importlib

    from .model.component import hyperparameters

    classes = getattr(importlib.import_module(f"hf_posgen.model.{module}"), registry)
    return [
        {"name": name, "hyper-parameters": str(hyperparameters(cls) or "-"), "what": (cls.__doc__ or "").split("\n")[0]}
        for name, cls in classes.items()
    ]


def _tasks():
    from .tasks import CONFIGS, TASKS

    return [
        {"task": name, "configurations": ", ".join(CONFIGS[name]), "what": cls.__doc__.split("\n")[0]}
        for name, cls in TASKS.items()
    ]


def _presets():
    from .sweep import points, presets, read_sweep

    out = []
    for name in presets():
        runs = points(read_sweep(name))
        panels = dict.fromkeys(run.panel for run in runs)
        out.append({"preset": name, "runs": len(runs), "panels": ", ".join(panels)})
    return out


LISTS = {
    "encodings": _encodings,
    "tasks": _tasks,
    "samplers": lambda: _components("position_sampler", "SAMPLERS"),
    "scales": lambda: _components("logit_scale", "LOGIT_SCALES"),
    "mixers": lambda: _components("mixer_registry", "MIXERS"),
    "presets": _presets,
}


def main(arguments: list[str] | None = None) -> None:
    """Run a command. Exit code 2 for usage, 1 for failure, one sentence either way."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        takes_dotted = arguments[:1] == ["train"]
        rest, changes = dotted_flags(arguments) if takes_dotted else (arguments, [])
        options = parser().parse_args(rest)
        if options.version:
            from . import __version__

            print(__version__)
            return
        if options.command is None:
            parser().print_help()
            return
        if options.command != "data" and options.command != "report":
            from . import register_auto_classes

            register_auto_classes()
        globals()[f"run_{options.command}"](options, changes)
    except KeyboardInterrupt:
        _leave("interrupted", 130)
    except (ValueError, FileExistsError) as error:
        _leave(error, 2)
    except Exception as error:
        _leave(error, 1)


def _leave(error, code: int):
    if os.environ.get("POSGEN_DEBUG"):
        raise error if isinstance(error, Exception) else SystemExit(code)
    print(f"posgen: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
    raise SystemExit(code)
