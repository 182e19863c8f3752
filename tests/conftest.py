"""Fixtures that several files share."""

import os

# The tests bring their own Hub and tokens: what a user's shell says of the real one must not reach them, and the client
# reads it when it is first imported.
for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_ENDPOINT", "HF_TOKEN"):
    os.environ.pop(name, None)

import pytest  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)


def pytest_addoption(parser):
    parser.addoption(
        "--imports",
        action="append",
        default=[],
        help="a module that registers an encoding: test the contract on it too",
    )


def pytest_configure(config):
    from hf_posgen.run.imports import import_modules

    import_modules(config.getoption("--imports"))


TINY_RUN = {
    "arm": "rope",
    "model": {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "norm": "none",
        "mlp": "none",
        "embedding_initializer_range": 1.0,
        "initializer_range": 0.1,
        "position_encoding": "rope",
    },
    "task": {"name": "fixed_offset", "test_lengths": [17, 32]},
    "train": {"steps": 12, "batch_size": 16, "save_every": 5, "log_every": 4, "cpu": True, "validation_count": 16},
    "evaluation": {"count": 32},
}


def _contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """A run folder of a few steps: everything in it is real, except that it learned next to nothing.

    All tests of a process share it, so none may write into it (take a copy): that is checked at the end."""
    from hf_posgen.run.build import build_run
    from hf_posgen.training.trainer import train

    folder = train(build_run(TINY_RUN), tmp_path_factory.mktemp("runs") / "rope-seed0", quiet=True)
    before = _contents(folder)
    yield folder
    after = _contents(folder)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    assert not changed, f"a test wrote into the shared run folder: {', '.join(changed)}"
