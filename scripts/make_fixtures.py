"""Write a small checkpoint per encoding for this release: `python scripts/make_fixtures.py`.

Run once per release, never again for the same one: tests/model/test_fixtures.py holds later code to these files.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from safetensors.torch import save_file

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.model.helpers import tiny, tokens  # noqa: E402

from hf_posgen import __version__  # noqa: E402
from hf_posgen.model.encoding_registry import ENCODINGS  # noqa: E402


def main() -> None:
    home = ROOT / "tests" / "fixtures" / __version__
    if home.exists():
        raise SystemExit(f"{home} exists: the checkpoints of a release are never written twice")
    for name in ENCODINGS:
        model = tiny(name, mlp="gated", norm="rmsnorm", intermediate_size=16)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            (home / name).mkdir(parents=True)
            for file in ("config.json", "model.safetensors"):
                shutil.copy(Path(folder) / file, home / name / file)
        save_file({"logits": model(tokens(1, 10)).logits.detach()}, home / name / "logits.safetensors")


if __name__ == "__main__":
    main()
