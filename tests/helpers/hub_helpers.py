"""Runs and tasks to publish on the stand-in Hub, and a stranger who reads them back."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import yaml

from hf_posgen.hub.publish import push, push_dataset
from hf_posgen.tasks import resolve_task
from tests.helpers.standin_hub import WRITE

REPO = "tester/posgen-rope"
SMALL = {"count": 4, "train_count": 4}
TASK = "tester/posgen-fixed-offset"


def published(finished_run: Path, into: Path) -> Path:
    """A copy of the run, of a task that has a name."""
    run = Path(shutil.copytree(finished_run, into / "rope-seed0"))
    tree = yaml.safe_load((run / "run.yaml").read_text())
    (run / "run.yaml").write_text(yaml.safe_dump(tree | {"task": resolve_task("fixed_offset")}, sort_keys=False))
    return run


def send(run, hub, repo_id=REPO, **options):
    return push(run, repo_id, **{"token": WRITE, "endpoint": hub.endpoint} | options)


def titles(hub, revision="main", repo_id=REPO):
    return [commit.title for commit in hub.repo(repo_id).history(revision)]


def send_task(folder, hub):
    push_dataset(folder, TASK, token=WRITE, endpoint=hub.endpoint)
    repo = hub.repo(TASK, "datasets")
    return repo, {path: data.decode() for path, data in repo.files().items() if not path.endswith(".parquet")}


def python(code: str, env: dict, cwd: Path) -> str:
    """Run code in another process; its output."""
    cwd.mkdir(exist_ok=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith("HF_")} | env
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(
        command, env=env | {"OMP_NUM_THREADS": "1"}, cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def stranger(hub, code: str, home: Path) -> str:
    """Run code where hf_posgen can't be imported, without a token, with an empty cache, in an empty folder."""
    guard = """
    import sys
    class Nobody:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "hf_posgen":
                raise ImportError("hf_posgen is not installed here")
    sys.meta_path.insert(0, Nobody())
    try:
        import hf_posgen
    except ImportError:
        pass
    else:
        raise SystemExit("hf_posgen can be imported")
    """
    return python(textwrap.dedent(guard) + textwrap.dedent(code), hub.environment(home), home)
