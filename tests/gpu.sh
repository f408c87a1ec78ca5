#!/usr/bin/env bash
# The suite of `make test-devices` on this machine's NVIDIA GPU; leaves a report.
#
#     bash tests/gpu.sh [REPORT]        default build/gpu.md, with everything said in build/gpu.log
#
# PYTHON names an interpreter whose environment has the package's dependencies and its extra `test`
# (default: .venv/bin/python if it is there, else python3). No network is used. SECONDS_AT_MOST ends
# the suite before a time limit of the machine; what ran until then stands in the report.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
report=${1:-$here/build/gpu.md}
mkdir -p "$(dirname "$report")"
report=$(cd "$(dirname "$report")" && pwd)/$(basename "$report")
cd "$here"

python=${PYTHON:-}
if [ -z "$python" ]; then
    python=python3
    if [ -x .venv/bin/python ]; then python=.venv/bin/python; fi
fi

"$python" - <<'CHECK'
import importlib.util
import sys

NEEDED = {
    "numpy": "numpy", "pyopencl": "pyopencl", "gguf": "gguf", "safetensors": "safetensors",
    "regex": "regex", "tqdm": "tqdm", "platformdirs": "platformdirs", "filelock": "filelock",
    "pytest": "pytest", "hypothesis": "hypothesis",
}
if sys.version_info < (3, 11):
    sys.exit(f"gpu.sh needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}")
missing = [package for module, package in NEEDED.items() if not importlib.util.find_spec(module)]
if missing:
    sys.exit(f"missing in {sys.executable}: {', '.join(missing)}; install with: "
             f"{sys.executable} -m pip install {' '.join(missing)}")
if not importlib.util.find_spec("xdist"):
    print("pytest-xdist is missing: the tests run one after the other.", flush=True)
CHECK

log=${report%.*}.log
status=0
"$python" tests/devices.py nvidia --report "$report" --seconds "${SECONDS_AT_MOST:-3600}" 2>&1 \
    | tee "$log" || status=$?

# With two GPUs also lesson 14: one rank on each gives the losses of one process.
gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
if [ "$gpus" -lt 2 ]; then
    said="Two ranks on two GPUs: not run, for there is one GPU."
elif ! "$python" -c 'import mpi4py' 2>/dev/null; then
    said="Two ranks on two GPUs: not run, for mpi4py is missing (the extra \`mpi\`)."
elif said=$(PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}" "$python" tests/two_ranks.py nvidia 2>&1); then
    said=$'Two ranks on two GPUs, beside one process:\n\n```\n'"$said"$'\n```'
else
    status=1
    said=$'Two ranks on two GPUs: NOT RIGHT\n\n```\n'"$said"$'\n```'
fi
printf '\n%s\n' "$said" | tee -a "$report" "$log"
exit "$status"
