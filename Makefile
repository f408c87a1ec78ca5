# Every target sets up what it needs in .venv first. No root, no path outside this folder.
# Only relative paths are used, so the folder's own path may hold spaces.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help lab test test-devices train bench mutants notebooks class lint clean

PY := .venv/bin/python
# The stamp's name holds a sum of the folder's path: an environment does not survive a move.
STAMP := .venv/.installed-$(shell pwd | cksum | cut -d ' ' -f 1)
PIP := $(PY) -m pip install -qq --disable-pip-version-check -e
# PoCL's wheel calls a linker for each kernel, and a machine without a C compiler has none.
HAS_LINKER := $(PY) -c 'import sys; from llmcl.vendors import find_linker; \
	sys.exit(sys.platform == "linux" and find_linker() is None)'
# Name an interpreter with `make PYTHON=/path/to/python3.12 …`.
PYTHON ?=

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

# Jupyter asks root, the usual user of a container, to say so.
lab: $(STAMP) ## open JupyterLab on lesson 00 (ARGS="--port 9000 …" reach it)
	@$(PY) -m jupyterlab --ServerApp.root_dir=. \
		--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb \
		$(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

test: $(STAMP) ## run every test and compare every notebook
	@$(PY) -m pytest -q -n 2 --dist loadfile --nbval --nbval-current-env --nbval-cell-timeout=120

train: $(STAMP) ## from text to build/model.gguf, checked in llama.cpp
	@.venv/bin/llmcl train --out build --resume
	@.venv/bin/llmcl verify build/model.gguf

# The peers are large, so they get an environment of their own, with the version measured here.
bench: $(STAMP) ## measure against NumPy, PyTorch and llama.cpp
	@test -x .venv-bench/bin/python || $(PY) -m venv .venv-bench
	@.venv-bench/bin/python -m pip install -qq --disable-pip-version-check -e '.[verify,intel]' \
		torch==2.13.0
	@mkdir -p build
	@.venv-bench/bin/llmcl bench --json build/bench.json $(ARGS)

# Intel's runtime is large, so it gets an environment of its own too.
test-devices: $(STAMP) ## run the kernels' suite on PoCL, Oclgrind and Intel's runtime
	@test -x .venv-devices/bin/python || $(PY) -m venv .venv-devices
	@.venv-devices/bin/python -m pip install -qq --disable-pip-version-check -e '.[test,intel]'
	@if ! $(HAS_LINKER); then .venv-devices/bin/python -m pip install -qq \
		--disable-pip-version-check -e '.[linker]'; fi
	@.venv-devices/bin/python tests/devices.py $(ARGS)

mutants: $(STAMP) ## change each kernel wrongly and see that a test notices (hours; ARGS="FILE …")
	@$(PY) tests/mutants.py $(ARGS)

notebooks: $(STAMP) ## build and run the notebooks from notebooks/src
	@$(PY) notebooks/build.py

class: $(STAMP) ## the lessons without answers and the answers apart (FOLDER=build/class)
	@$(PY) notebooks/build.py --class "$(or $(FOLDER),build/class)" $(ARGS)

lint: $(STAMP) ## look for what ruff finds
	@$(PY) -m ruff check .

clean: ## remove what was built, and the environment
	rm -rf .venv .venv-bench .venv-devices build dist .pytest_cache .hypothesis .ruff_cache

$(STAMP): pyproject.toml
	@$(find-python); \
	if ! $(PY) -c '' 2>/dev/null; then "$$python" -m venv --clear .venv || exit 1; fi; \
	echo "Installing into .venv: about a minute, 1 GB …"; \
	$(PIP) '.[dev]' || exit 1; \
	if ! $(HAS_LINKER); then $(PIP) '.[linker]' || exit 1; fi; \
	rm -f .venv/.installed-*; touch "$(STAMP)"

# Sets $python to an interpreter of 3.11 or newer that can make an environment, or stops.
define find-python
python=; \
for name in $(if $(PYTHON),"$(PYTHON)",python3 python3.13 python3.12 python3.11 python); do \
	if "$$name" -c 'import sys, venv, ensurepip; assert sys.version_info >= (3, 11)' 2>/dev/null; \
	then python=$$name; break; fi; \
done; \
if [ -z "$$python" ]; then \
	found=$$("$(or $(PYTHON),python3)" --version 2>&1 | head -n 1); \
	echo "llmcl needs Python 3.11 or newer with its venv module (found: $$found);" \
		"install it (on Debian and Ubuntu also python3-venv)" \
		"or name one: make PYTHON=/path/to/python3.11" >&2; \
	exit 1; \
fi
endef
