"""Build the data sets: `build_datasets.py cards` writes datasets/<task>/README.md, `build_datasets.py DIR [TASK ...]` the
Parquet folders for the Hub (study 2's stated sizes with their pool of 10 million training tokens)."""

import sys
from pathlib import Path

from hf_posgen.tasks import TASKS, build_task, config_spec, dataset_card, export_task, generated_tasks

CARDS = Path(__file__).parent.parent / "datasets"
POOL_TOKENS = 10_000_000


def pool(name: str) -> dict[str, int]:
    """Training sequences per cell of each configuration: the paper's pool where the sizes are the paper's."""
    tasks = {config: build_task(config_spec(name, config)) for config in TASKS[name].configs}
    stated = {config: task for config, task in tasks.items() if name == "delay_copy" and task.window == 256}
    return {config: -(-POOL_TOKENS // task.window) for config, task in stated.items()}


def main(arguments: list[str]) -> None:
    if arguments == ["cards"]:
        for name in generated_tasks():
            path = CARDS / name / "README.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dataset_card(name), encoding="utf-8")
        return
    if not arguments:
        raise SystemExit(__doc__)
    folder, *names = arguments
    for name in names or generated_tasks():
        print(export_task(name, Path(folder) / name, train_count=pool(name)))


if __name__ == "__main__":
    main(sys.argv[1:])
