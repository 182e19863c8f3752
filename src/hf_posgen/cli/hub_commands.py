"""The commands that bring things to the Hub and from it."""

from ..common.names import unknown
from .parser import names, parser_of, register


def push(arguments: list[str]) -> None:
    """publish a run folder on the Hub"""
    parser = parser_of(push)
    parser.add_argument("run", help="a run folder")
    parser.add_argument("--repo-id", required=True, help="owner/name on the Hub")
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--revision", help="a branch, made if there is none, or refs/pr/N")
    parser.add_argument("--create-pr", action="store_true", help="open a pull request")
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be done and the card, without a network"
    )
    given = parser.parse_args(arguments)
    register()
    options = {"private": given.private, "revision": given.revision, "create_pr": given.create_pr}
    if given.dry_run:
        from ..hub.release import plan

        print("\n".join(plan(given.run, given.repo_id, **options, show_card=True)))
        return
    from ..hub.publish import push as publish

    print(publish(given.run, given.repo_id, **options))


def data(arguments: list[str]) -> None:
    """export a task as a data set (data export TASK DIR), or publish one (data push DIR)"""
    actions = {"export": data_export, "push": data_push}
    if arguments[:1] in ([], ["--help"], ["-h"]):
        print("usage: posgen data export TASK DIR ... | posgen data push DIR --repo-id OWNER/NAME ...")
        return
    if arguments[0] not in actions:
        raise unknown("action of posgen data", arguments[0], actions)
    actions[arguments[0]](arguments[1:])


def data_export(arguments: list[str]) -> None:
    """write a folder that load_dataset opens"""
    parser = parser_of(data_export, "data export")
    parser.add_argument("task", help="a task's name (posgen list tasks)")
    parser.add_argument("folder", help="where to write it")
    parser.add_argument("--configs", nargs="+", help="which named configurations (default: all)")
    parser.add_argument("--count", type=int, default=1000, help="sequences per evaluation cell (default: 1000)")
    parser.add_argument("--train-count", type=int, default=10000, help="sequences per cell of train (default: 10000)")
    parser.add_argument("--seed", type=int, default=0, help="of the sequences (default: 0)")
    parser.add_argument("--imports", type=names, help="modules that register tasks of your own, by name")
    given = parser.parse_args(arguments).as_dict()
    from ..run.imports import import_modules
    from ..tasks import export_task

    import_modules(given.pop("imports"))
    print(export_task(given.pop("task"), given.pop("folder"), **given))


def data_push(arguments: list[str]) -> None:
    """publish an exported folder on the Hub"""
    parser = parser_of(data_push, "data push")
    parser.add_argument("folder", help="a folder that posgen data export wrote")
    parser.add_argument("--repo-id", required=True, help="owner/name on the Hub")
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, without a network")
    given = parser.parse_args(arguments)
    if given.dry_run:
        from ..hub.release import plan_dataset

        print("\n".join(plan_dataset(given.folder, given.repo_id, given.private)))
        return
    from ..hub.publish import push_dataset

    print(push_dataset(given.folder, given.repo_id, private=given.private))


def convert(arguments: list[str]) -> None:
    """take over a transformers checkpoint (GPT-2, Llama, GPT-NeoX, MPT, BLOOM), or make a Llama of a RoPE run"""
    parser = parser_of(convert)
    parser.add_argument("source", help="a folder or a Hub id")
    parser.add_argument("out", help="where to write the converted checkpoint")
    parser.add_argument("--to", help="llama: the other way (default: to posgen)")
    given = parser.parse_args(arguments)
    register()
    from ..convert import convert as run_conversion

    print(run_conversion(given.source, given.out, to=given.to))
