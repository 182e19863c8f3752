"""What the data of a task are called on the Hub, and how their repository declares itself a benchmark."""

import yaml

from ..registry import TASKS, config_name, custom_name, generated_tasks


def repository(task: str) -> str:
    """Return what a task's data set is called on the Hub."""
    return f"posgen-{task.replace('_', '-')}"


def named(spec: dict) -> bool:
    """Whether the data of a complete spec have, or may have, a repository on the Hub: of generated tasks the named
    configurations, of the user's own data what is read from the Hub."""
    return config_name(spec) is not None or _hub_corpus(spec) is not None


def benchmark(spec: dict, owner: str | None = None) -> tuple[str, str]:
    """Return (id of the data set, its configuration) of a complete spec.

    Where neither has a repository: the name of the kind of task without an owner, and for what is generated "custom_"
    with a digest."""
    if spec["name"] in TASKS and spec["name"] not in generated_tasks():
        return _hub_corpus(spec) or spec["name"], spec.get("config") or "default"
    dataset, config = repository(spec["name"]), config_name(spec)
    if config is None:
        return dataset, custom_name(spec)
    return (f"{owner}/{dataset}" if owner else dataset), config


def _hub_corpus(spec: dict) -> str | None:
    cls = TASKS.get(spec["name"])
    return None if cls is None else cls.hub_corpus(spec)


def headline(configs: dict[str, list[str]]) -> str:
    """Return the one task of a benchmark that represents it: of the first configuration the split `farther`, else its last
    split. configs: {configuration: its splits}."""
    config, splits = next(iter(configs.items()))
    return f"{config}_{'farther' if 'farther' in splits else splits[-1]}"


def benchmark_file(name: str, configs: dict[str, list[str]]) -> str:
    """Return the `eval.yaml` by which a data set's repository declares itself a benchmark: a task per configuration and
    split, the headline first and named in the description.

    It is ready for the day the Hub lists it: leaderboards open only for data sets and frameworks that its staff admit."""
    first = headline(configs)
    tasks = [
        {"id": f"{config}_{split}", "config": config, "split": split}
        for config, splits in configs.items()
        for split in splits
        if split != "train"
    ]
    tasks.sort(key=lambda task: task["id"] != first)
    head = {
        "name": name,
        "description": "Whether a positional encoding generalises to lengths and distances it was not trained on. "
        f"Headline task: {first}.",
        "evaluation_framework": "hf_posgen",
    }
    return yaml.safe_dump(head | {"tasks": tasks}, sort_keys=False)


def point_label(key: str) -> str:
    """Return a reference point's name in words: "ngram_2_rest" is "2-gram baseline, rest of the paste"."""
    family, _, rest = key.partition("_")
    if family != "ngram":
        return key.replace("_", " ")
    n, _, part = rest.partition("_")
    return f"{n}-gram baseline{', rest of the paste' if part else ''}"
