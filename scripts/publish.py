"""Publish run folders, exported tasks and the metrics under one owner, with a collection of them all.

python scripts/publish.py --org ORG --runs RUN... --datasets DIR... --metrics --collection TITLE --dry-run
"""

import argparse
import re
from importlib.resources import files
from pathlib import Path

from hf_posgen.card.model_card import render
from hf_posgen.hub.errors import PushError
from hf_posgen.hub.release import model_name, release

METRICS = Path(str(files("hf_posgen") / "metrics"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--org", required=True, help="the owner on the Hub: a user or an organisation")
    parser.add_argument("--runs", nargs="*", type=Path, default=[], help="run folders")
    parser.add_argument("--datasets", nargs="*", type=Path, default=[], help="folders from `posgen data export`")
    parser.add_argument("--metrics", action="store_true", help="the metrics that come with the package, as Spaces")
    parser.add_argument("--collection", help="the title of a collection to list them in")
    parser.add_argument("--private", action="store_true", help="make new repositories private")
    parser.add_argument("--dry-run", action="store_true", help="print all it would do, and do nothing")
    parser.add_argument("--cards", type=Path, help="also write each run's card to this folder, as <repository>.md")
    options = parser.parse_args()
    metrics = sorted(METRICS.glob("posgen_*")) if options.metrics else []
    if not options.runs and not options.datasets and not metrics:
        parser.error("nothing to publish: name --runs, --datasets or --metrics")
    try:
        for folder in options.runs if options.cards else []:
            name = model_name(folder)
            options.cards.mkdir(parents=True, exist_ok=True)
            card = render(folder, f"{options.org}/{name}")["README.md"].splitlines()
            text = "\n".join(line for line in card if not line.startswith("!["))  # figures stay beside the checkpoint
            (options.cards / f"{name}.md").write_text(re.sub(r"\n{3,}", "\n\n", text) + "\n", encoding="utf-8")
        where = {"private": options.private, "collection": options.collection, "dry_run": options.dry_run}
        print("\n".join(release(options.org, options.runs, options.datasets, metrics, **where)))
    except ValueError as error:
        parser.error(str(error))
    except PushError as error:
        parser.exit(1, f"publish.py: {error}\n")


if __name__ == "__main__":
    main()
