"""Publishing many: what each repository is called, what would be done, and a collection of all."""

import re
from collections.abc import Iterable
from pathlib import Path

from huggingface_hub import HfApi

from ..card.model_card import render
from ..run.folder import CARD, state_name
from ..tasks import TASKS
from ..tasks.dataset.published import benchmark, named, repository
from .errors import PushError
from .files import metric_files, open_finished_run, read_export, run_files, stamps, whole_steps
from .publish import push, push_dataset, push_metric
from .repo import PULL, check_name, check_revision, connect


def model_name(run_folder: str | Path) -> str:
    """Return the name of a run's repository: posgen-<task>-<arm>-seed<n>, after the task its configuration where that has a
    name and isn't the task's default."""
    run = open_finished_run(run_folder).config_tree()
    task = run["task"]
    configs = TASKS[task["name"]].configs if task["name"] in TASKS else {}
    default = next(iter(configs), "default")
    config = benchmark(task)[1] if named(task) else default
    parts = ["posgen", task["name"], *([] if config == default else [config]), run["arm"], f"seed{run['seed']}"]
    return re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(parts)).strip("-.")[:96]


def dataset_name(folder: str | Path) -> str:
    """Return the name of a task's repository: posgen-<task>."""
    return repository(next(iter(read_export(Path(folder)).values())).name)


def plan(
    run_folder: str | Path,
    repo_id: str,
    private: bool = False,
    revision: str | None = None,
    create_pr: bool = False,
    show_card: bool = False,
) -> list[str]:
    """Return what `push` would do, a line each, and on demand the card, without a network.

    Raises as `push` does for what can't be."""
    check_name(repo_id)
    revision = check_revision(revision, create_pr)
    run, pull = open_finished_run(run_folder), PULL.fullmatch(revision or "")
    steps = [] if revision or create_pr else whole_steps(run)
    files, rows = stamps(run.path, run_files), run.rows()
    texts = render(run.path, repo_id, steps=steps)
    size = sum(size for _, size, _ in files.values()) + sum(len(text.encode()) for text in texts.values())
    if create_pr:
        target = f"our open pull request 'Add {run.name}', opened if there is none"
    elif pull:
        target = f"pull request {pull[1]}, which must be open"
    else:
        target = f"branch {revision}, made from main if there is none" if revision else "main"
    made = "it must be there" if create_pr or pull else f"make it {_visibility(private)} if there is none"
    count = len(files.keys() | texts.keys())
    lines = [
        f"model {repo_id}: {made}",
        f"  {target}: one commit, {count} files, {size / 1e6:.1f} MB, {len(rows)} rows of results",
    ]
    lines += [f"  branch {state_name(step)}: the checkpoint after {step} steps" for step in steps]
    return lines + (["", "README.md:", "", *texts[CARD].splitlines()] if show_card else [])


def plan_dataset(folder: str | Path, repo_id: str, private: bool = False) -> list[str]:
    """Return what `push_dataset` would do, a line each, without a network."""
    check_name(repo_id)
    manifests = read_export(Path(folder))
    shards = [file for manifest in manifests.values() for file in manifest.files]
    count, size = len(shards) + len(manifests) + 2, sum(file["bytes"] for file in shards)
    return [
        f"data set {repo_id}: make it {_visibility(private)} if there is none",
        f"  main: one commit, {count} files, {size / 1e6:.1f} MB, configurations {', '.join(manifests)}",
        "  what else is there, other configurations too, is kept",
    ]


def plan_metric(folder: str | Path, repo_id: str, private: bool = False) -> list[str]:
    """Return what `push_metric` would do, a line each, without a network."""
    return [
        f"space {repo_id}: make it {_visibility(private)} if there is none",
        f"  main: one commit, {len(metric_files(Path(folder)))} files, the metric {Path(folder).name}",
    ]


def _visibility(private: bool) -> str:
    return "private" if private else "public"


def release(
    org: str,
    runs: Iterable[Path],
    datasets: Iterable[Path],
    metrics: Iterable[Path] = (),
    *,
    private: bool = False,
    collection: str | None = None,
    dry_run: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
) -> list[str]:
    """Publish run folders, tasks and metrics under `org`, listed in a collection of that title; return a line for each.

    dry_run: only describe what would be done, without a network or a token. Data sets come first: the cards name them.
    Raises as `push` does, and `ValueError` where two folders would get one name."""
    items = [("dataset", dataset_name(folder), folder) for folder in datasets]
    items += [("model", model_name(folder), folder) for folder in runs]
    items += [("space", folder.name, folder) for folder in metrics]
    names = [(kind, name) for kind, name, _ in items]
    for twice in {one for one in names if names.count(one) > 1}:
        raise ValueError(f"two folders would become the {twice[0]} {org}/{twice[1]}: publish them one by one")
    if dry_run:
        plans = {"dataset": plan_dataset, "model": plan, "space": plan_metric}
        lines = [line for kind, name, folder in items for line in plans[kind](folder, f"{org}/{name}", private)]
        return lines + ([f"collection {org}/{collection!r}: {len(items)} items"] if collection else [])
    where = {"private": private, "token": token, "endpoint": endpoint}
    pushes = {"dataset": push_dataset, "model": push, "space": push_metric}
    lines = [pushes[kind](folder, f"{org}/{name}", **where) for kind, name, folder in items]
    if collection:
        listed = [(kind, f"{org}/{name}") for kind, name, _ in items]
        lines.append(collect(org, collection, listed, private, token, endpoint))
    return lines


def collect(
    org: str, title: str, items: list[tuple[str, str]], private: bool, token: str | None, endpoint: str | None
) -> str:
    """Make a collection, or go on with the one of this title, and add what it lacks of the (kind, id); return its address.

    Raises as `push` does."""
    repo = connect(items[0][1], items[0][0], token, endpoint)
    api: HfApi = repo.api
    made = repo.call(api.create_collection, title, namespace=org, private=private, exists_ok=True)
    if private and not made.private:
        raise PushError(f"the collection {made.slug} exists and is public, but a private one was asked for")
    for kind, name in items:
        repo.call(api.add_collection_item, made.slug, name, kind, exists_ok=True)
    return f"{api.endpoint}/collections/{made.slug}"
