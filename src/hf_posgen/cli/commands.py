"""The commands that train and measure."""

import os
from functools import partial
from pathlib import Path

from ..common.names import unknown
from ..common.yaml_text import read_yaml
from ..run.schema import COMPONENTS, model_fields
from ..run.tree import merge, override
from .lists import LISTS, describe, table
from .parser import UsageError, names, parser_of, register, run_options, spec_options

SPECS = ("task", *(f"model.{name}" for name in COMPONENTS))


def train(arguments: list[str]) -> None:
    """train one run from a YAML file; the same command goes on where it stopped"""
    parser = parser_of(train, usage="posgen train [run.yaml] --out OUT [--KEY VALUE ...]")
    parser.add_argument("run", nargs="?", help="run.yaml; options change it, wherever they stand")
    parser.add_argument("--config", help="the same file, as an option")
    parser.add_argument("--out", required=True, help="the run folder; an unfinished one goes on")
    parser.add_argument("--push", metavar="OWNER/NAME", help="publish every checkpoint there in the background")
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--no-evaluate", action="store_true", help="train only")
    run_options(parser)
    rest, specs = spec_options(arguments, SPECS)
    given = parser.parse_args(rest).as_dict()
    tree = run_tree(given, specs)
    register()
    from ..report.markdown import summary_tables
    from ..run.build import build_run
    from ..run.components import component_name
    from ..run.folder import RunFolder
    from ..training.trainer import train as run_training

    run = build_run(tree)
    uploads = None
    if given["push"]:
        from ..hub.background import BackgroundPush

        uploads = partial(BackgroundPush, given["push"], private=given["private"])
    folder = run_training(run, given["out"], evaluate=not given["no_evaluate"], uploads=uploads)
    if os.environ.get("RANK", "0") == "0":  # one process speaks
        if rows := RunFolder(folder).rows():
            print(summary_tables(rows), end="\n\n")
        what = f"{component_name(run.model, 'position_encoding')} on {run.task['name']}, {run.train.steps:,} steps"
        print(f"Run folder: {folder} ({what})")


def run_tree(given: dict, specs: list[tuple[str, str]]) -> dict:
    """The run's file with the options laid over it, wherever they stood; a spec is refined and keeps its name."""
    if given["run"] and given["config"]:
        raise UsageError("the run is given twice: as an argument and as --config")
    source = given["run"] or given["config"]
    tree = read_yaml(source) if source else {}
    sections = ("train", "evaluation", "model", "seed", "arm", "panel", "imports")
    changes = {key: given[key] for key in sections if key in given}
    tree = merge(tree, changes)
    tree.setdefault("task", "fixed_offset")
    model = tree.setdefault("model", {})
    for name in COMPONENTS if isinstance(model, dict) else ():  # a hyper-parameter alone refines the default component
        model.setdefault(name, model_fields()[name][1])
    for key, text in specs:
        tree = override(tree, key, text)
    return tree


def evaluate(arguments: list[str]) -> None:
    """measure a run folder again, or any causal language model on a task"""
    parser = parser_of(evaluate, usage="posgen evaluate MODEL [--task TASK [--task.KEY VALUE ...]] [-o OUT] [options]")
    parser.add_argument("model", help="a run folder, a Hub id, or the folder of any causal language model")
    parser.add_argument("-o", "--out", help="where the rows go, as results.jsonl (default: into a run's own folder)")
    parser.add_argument("--task", help="a task's name; --task.KEY sets a parameter of it (default: the run's)")
    parser.add_argument("--count", type=int, help="sequences per cell (default: the run's, else 1000)")
    parser.add_argument("--splits", nargs="+", type=names, help="which splits (default: the run's, else all)")
    parser.add_argument("--lengths", type=str, help="only these lengths, such as 4-16,48 (default: all)")
    parser.add_argument("--free-running", action="store_true", help="also where it reads its own pasted tokens")
    parser.add_argument("--batch-tokens", type=int, help="at most so many tokens at once; halved when memory runs out")
    parser.add_argument("--arm", help="the name in tables (default: the run's, else the model's)")
    parser.add_argument("--panel", help="the study it is shown with")
    parser.add_argument("--revision", help="a branch, tag or commit of the Hub")
    parser.add_argument("--trust-remote-code", action="store_true", help="run the code that comes with the model")
    other = parser.add_argument_group("models that are no runs of ours")
    other.add_argument(
        "--prompt", default="symbols", help="symbols: a sequence as it is (default); few-shot: after examples"
    )
    other.add_argument(
        "--shots", type=int, default=4, help="how many solved examples a few-shot prompt shows (default: 4)"
    )
    other.add_argument("--data-seed", type=int, help="of the sequences (default: 0)")
    other.add_argument(
        "--training-seed", type=int, help="which of several trainings this model is, as tables count seeds"
    )
    other.add_argument("--past-limit", action="store_true", help="ask a rotary model past its max_position_embeddings")
    rest, changes = spec_options(arguments, ("task",))
    given = parser.parse_args(rest).as_dict()
    spec = {}
    for key, text in changes:
        spec = override(spec, key, text)
    if given["splits"]:
        given["splits"] = sum(given["splits"], [])
    register()
    from ..evaluation.targets import run_evaluation
    from ..report.markdown import summary_tables
    from ..tasks.core.parameters import numbers

    if given["lengths"]:
        given["lengths"] = numbers(given["lengths"])
    rows, said, where = run_evaluation(given.pop("model"), **given | {"task": spec.get("task")})
    print(f"{said}\n\n{summary_tables(rows)}\n\nRows: {where or 'not kept; -o OUT keeps them'}")


def sweep(arguments: list[str]) -> None:
    """train, evaluate and report many runs; what is done is kept"""
    parser = parser_of(sweep)
    parser.add_argument("sweep", help="a preset's name or a YAML file")
    parser.add_argument("--out", required=True, help="the sweep's folder")
    parser.add_argument("--workers", type=int, help="runs at a time here (default: one per GPU, else one per core)")
    parser.add_argument("--executor", help="local (default), slurm or hf-jobs; --executor.KEY sets an option of it")
    parser.add_argument(
        "--dry-run", action="store_true", help="write each run.yaml; print the commands, time and memory"
    )
    parser.add_argument(
        "--flops", type=float, help="operations per second that --dry-run counts with (default: a guess)"
    )
    rest, changes = spec_options(arguments, ("executor",))
    given = parser.parse_args(rest)
    spec = {}
    for key, text in changes:
        spec = override(spec, key, text)
    spec = spec.get("executor", "local")
    options = {"name": spec} if isinstance(spec, str) else {"name": "local"} | spec
    if given.workers is not None:
        options["workers"] = given.workers
    register()
    from ..sweep.executors.registry import known_executor
    from ..sweep.run import dry_run
    from ..sweep.run import sweep as run_sweep
    from .outcome import print_outcome

    known_executor(options["name"])
    if given.dry_run:
        print("\n".join(dry_run(given.sweep, given.out, given.flops)))
        return
    rows, paths, failures = run_sweep(given.sweep, given.out, executor=options.pop("name"), **options)
    print_outcome(Path(given.out), rows, paths, failures)
    if failures:
        raise RuntimeError(f"{len(failures)} run{'s' if len(failures) > 1 else ''} of the sweep failed")


def analyze(arguments: list[str]) -> None:
    """say why a run generalises or breaks: kernels, dilution, pinning, ..."""
    parser = parser_of(analyze)
    parser.add_argument("folder", help="a run's folder, a sweep's (all its runs), or that of a posgen model")
    parser.add_argument("--only", nargs="+", type=names, help="some of the analyses, by name (default: all)")
    parser.add_argument("--imports", nargs="+", type=names, help="modules that register further analyses")
    given = parser.parse_args(arguments)
    register()
    from ..analysis import analyze as run_analysis
    from ..analysis import describe, run_folders

    only, imports = (sum(given_names, []) if given_names else [] for given_names in (given.only, given.imports))
    for folder in run_folders(given.folder):
        results = run_analysis(folder.path, only=only or None, imports=imports)
        shown = {name: result for name, result in results.items() if not only or name in only}
        print(f"{describe(shown)}\n\nAll numbers: {folder.analysis}, figures beside it\n")
    print("What each number means: docs/analyses.md, and the docstrings of hf_posgen.analysis")


def label(text: str) -> tuple[str, str]:
    """Return the arm and the name to show for it, from ARM=TEXT. Raises `UsageError` for anything else."""
    arm, sign, shown = text.partition("=")
    if not (arm and sign):
        raise UsageError(f"{text!r} names no arm and text; it must be ARM=TEXT, such as rope=RoPE")
    return arm, shown


def report(arguments: list[str]) -> None:
    """make a report from the rows of run or sweep folders"""
    parser = parser_of(report)
    parser.add_argument("folders", nargs="+", help="run or sweep folders")
    parser.add_argument("-o", "--out", required=True, help="where to write it")
    parser.add_argument(
        "--contrasts", nargs="+", help="pairs of arms to test, such as none:rope (default: the sweeps' own, else all)"
    )
    parser.add_argument("--title", help="the heading of the report (default: Extrapolation report)")
    parser.add_argument(
        "--labels",
        nargs="+",
        metavar="ARM=TEXT",
        help="names to show for arms, such as rope='RoPE, base 500'",
    )
    given = parser.parse_args(arguments)
    labels, titled = dict(map(label, given.labels or ())), {"title": given.title} if given.title else {}
    from ..common.names import pairs_of_arms
    from ..report.markdown import collect_rows, declared_contrasts, import_modules_of, relabel, summary_tables
    from ..report.markdown import report as make_report

    rows = collect_rows(given.folders)
    import_modules_of(given.folders)
    pairs = declared_contrasts(given.folders)
    if given.contrasts:
        pairs = pairs_of_arms(given.contrasts, dict.fromkeys(row["arm"] for row in rows))
    paths = make_report(rows, given.out, contrasts=pairs, labels=labels, **titled)
    print(f"{summary_tables(relabel(rows, labels))}\n\nReport: {paths.markdown}")


def show_list(arguments: list[str]) -> None:
    """show what there is (encodings, tasks, presets, samplers, scales, mixers, analyses); with a name, its parameters"""
    parser = parser_of(show_list, "list")
    parser.add_argument("what", help=", ".join(LISTS))
    parser.add_argument("name", nargs="?", help="one of them: its parameters, with type, default and meaning")
    parser.add_argument("--imports", type=names, help="modules of your own that register encodings, tasks or analyses")
    given = parser.parse_args(arguments)
    if given.what not in LISTS:
        raise unknown("list", given.what, LISTS)
    register()
    from ..run.imports import import_modules

    import_modules(given.imports or [])
    print(describe(given.what, given.name) if given.name else table(LISTS[given.what]()))
