"""Run transformers' own model tests over our model: `make test-conformance`.

The tests come from the source distribution of the transformers that is installed, fetched into a cache folder; the three
modules it lacks are stubbed. Prints every failure, and how many checks passed and were skipped for which reason.
"""

import argparse
import collections
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import transformers

ROOT = Path(__file__).resolve().parent.parent
# The modules that the source distribution leaves out.
STUBS = {
    "__init__.py": "",
    "exporters/test_export.py": "class ExportTesterMixin:\n    pass\n",
    "generation/test_utils.py": "class GenerationTesterMixin:\n    pass\n",
    "utils/test_configuration_utils.py": """config_common_kwargs = {
    "return_dict": False, "output_hidden_states": True, "output_attentions": True, "dtype": "float16",
    "chunk_size_feed_forward": 5, "architectures": ["BertModel"], "id2label": {0: "label"}, "label2id": {"label": "0"},
    "problem_type": "regression", "name_or_path": "", "is_encoder_decoder": True,
}
""",
}


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "-q", *arguments], check=True)


def fetch(cache: Path) -> Path:
    """The folder that holds the package `transformers_tests` and all it needs."""
    version = transformers.__version__
    folder = cache / f"transformers-{version}"
    if not (folder / "ready").exists():
        cache.mkdir(parents=True, exist_ok=True)
        pip("download", "--no-binary", ":all:", "--no-deps", "-d", str(cache), f"transformers=={version}")
        with tarfile.open(cache / f"transformers-{version}.tar.gz") as archive:
            archive.extractall(cache, filter="data")
        package = (folder / "tests").rename(folder / "transformers_tests")
        for name, text in STUBS.items():
            (package / name).parent.mkdir(exist_ok=True)
            (package / name).write_text(text, encoding="utf-8")
        pip("install", "--target", str(folder), "--no-deps", "parameterized")
        (folder / "ready").touch()
    return folder


class Summary:
    """What became of each check."""

    def __init__(self):
        self.outcomes, self.reasons = collections.Counter(), collections.Counter()
        self.failures = []

    def pytest_runtest_logreport(self, report):
        part = hasattr(report, "context")  # of a check, which itself is reported as passed
        if report.outcome == "passed" and (part or report.when != "call"):
            return
        self.outcomes[report.outcome] += 1
        if report.skipped:
            self.reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1
        elif report.failed:
            self.failures.append(report.nodeid.split("::", 1)[1] + (f" {report.context}" if part else ""))

    def __str__(self) -> str:
        lines = [f"{count:5d}  skipped: {reason}" for reason, count in self.reasons.most_common()]
        lines += [f"       FAILED {name}" for name in self.failures]
        total = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        return "\n".join([*lines, f"transformers {transformers.__version__}'s tests over our model: {total}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "hf_posgen", help="where tests are kept")
    parser.add_argument("-k", help="only the tests whose names match, as pytest's -k")
    parser.add_argument("-n", default="2", help="how many processes")
    options = parser.parse_args()
    folder = fetch(options.cache)
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    summary = Summary()
    arguments = [str(ROOT / "tests" / "conformance" / "model_suite.py"), "-q", "--tb=short", "-n", options.n]
    arguments += ["-p", "no:cacheprovider", "--no-header", "-r", "N", "--disable-warnings", f"--rootdir={ROOT}"]
    status = pytest.main(arguments + (["-k", options.k] if options.k else []), plugins=[summary])
    print(summary)
    return int(status)


if __name__ == "__main__":
    raise SystemExit(main())
