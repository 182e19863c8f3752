#!/usr/bin/env bash
# Build the wheel, install it into a fresh environment outside the checkout, and use it: list, train, report, push --dry-run.
#
# scripts/check_wheel.sh [PYTHON]   PYTHON: an interpreter whose packages serve as the dependencies (offline, fast);
#                                   without one they are installed from the index.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
lender=${1:+$(realpath -s "$1")}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PYTHONPATH

python=$work/fresh/bin/python
if [ -n "$lender" ]; then  # the fresh environment reads the lender's packages after its own
  "$lender" -m venv --without-pip fresh
  pip=("$lender" -m pip --python "$python")
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  "$lender" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/lender.pth"
  options=(--no-deps)
  build=(--no-build-isolation)
else
  python3 -m venv fresh
  pip=("$python" -m pip)
  options=()
  build=()
  if [ -f "${PIP_CONSTRAINT:-}" ] || [ -f "$root/${PIP_CONSTRAINT:-}" ]; then export PIP_CONSTRAINT=$root/constraints.txt; fi
fi
# A copy, so that no build folder of the checkout lends files to the wheel.
mkdir source && (cd "$root" && git ls-files -z --cached --others --exclude-standard | tar --null -cf - -T -) | tar -xf - -C source
"${lender:-$python}" -m pip wheel -q --no-deps "${build[@]}" -w wheels ./source
"${pip[@]}" install -q --force-reinstall "${options[@]}" wheels/hf_posgen-*.whl

where=$("$python" -c 'import hf_posgen; print(hf_posgen.__file__)')
case $where in "$work"/fresh/*) ;; *) echo "not the wheel: $where"; exit 1 ;; esac
posgen=$work/fresh/bin/posgen
test "$("$posgen" --version)" = "$("$python" -c 'from importlib.metadata import version; print(version("hf-posgen"))')"
for what in encodings tasks presets samplers scales mixers; do "$posgen" list "$what" >/dev/null; done
"$posgen" train --out runs/rope --task.test_lengths 17 --train.steps 2 --train.batch_size 4 --train.cpu true \
  --model.hidden_size 16 --model.num_hidden_layers 1 --evaluation.count 4
"$posgen" report runs/rope -o report
test -s report/report.md && test -s report/report.html
"$posgen" push runs/rope --repo-id me/posgen-rope --dry-run
cd runs/rope  # the checkpoint opens without the package
"$python" - <<'EOF'
import sys
sys.modules["hf_posgen"] = None  # importing it fails from here on
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(".", trust_remote_code=True)
print(type(model).__name__, "opens with transformers alone")
EOF
echo "the wheel works: $(basename "$work"/wheels/*.whl)"
