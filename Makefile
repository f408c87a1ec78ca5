# Every target sets up what it needs in .venv first. No root, no path outside this folder.
# Only relative paths are used, so the folder's own path may hold spaces.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help lab test test-devices test-browser test-site test-class ci lint mutants train bench \
	notebooks class slides site handout wheelhouse constraints clean

PY := .venv/bin/python
# The stamp's name holds a sum of the folder's path: an environment does not survive a move.
STAMP := .venv/.installed-$(shell pwd | cksum | cut -d ' ' -f 1)
# The newest releases are taken; `make test CONSTRAINTS="-c constraints.txt"` takes those written down.
CONSTRAINTS ?=
INSTALL := -m pip install -qq --disable-pip-version-check $(CONSTRAINTS)
PIP := $(PY) $(INSTALL) -e
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

# Chromium is the system's: its own download would come from outside of the package registry.
test-browser: $(STAMP) ## open every lesson in Chromium, move, stop and type (11 minutes)
	@$(PY) -c 'import playwright' 2>/dev/null || $(PIP) '.[dev,browser]'
	@sh tests/install_chromium.sh
	@$(PY) -m pytest -q tests/browser $(ARGS)

train: $(STAMP) ## from text to build/model.gguf, checked in llama.cpp
	@.venv/bin/llmcl train --out build --resume
	@.venv/bin/llmcl verify build/model.gguf

# The peers are large, so they get an environment of their own, with the version measured here.
bench: $(STAMP) ## measure against NumPy, PyTorch and llama.cpp
	@test -x .venv-bench/bin/python || $(PY) -m venv .venv-bench
	@.venv-bench/bin/python $(INSTALL) -e '.[verify,intel]' \
		torch==2.13.0
	@mkdir -p build
	@.venv-bench/bin/llmcl bench --json build/bench.json $(ARGS)

# Intel's runtime is large, so it gets an environment of its own too.
test-devices: $(STAMP) ## run the kernels' suite on PoCL, Oclgrind and Intel's runtime
	@test -x .venv-devices/bin/python || $(PY) -m venv .venv-devices
	@.venv-devices/bin/python $(INSTALL) -e '.[test,intel]'
	@if ! $(HAS_LINKER); then .venv-devices/bin/python $(INSTALL) -e '.[linker]'; fi
	@.venv-devices/bin/python tests/devices.py $(ARGS)

mutants: $(STAMP) ## change each kernel wrongly and see that a test notices (hours; ARGS="FILE …")
	@$(PY) tests/mutants.py $(ARGS)

notebooks: $(STAMP) ## build and run the notebooks from notebooks/src
	@$(PY) notebooks/build.py

class: $(STAMP) ## the lessons without answers and the answers apart (FOLDER=build/class)
	@$(PY) notebooks/build.py --class "$(or $(FOLDER),build/class)" $(ARGS)

slides: $(STAMP) ## some ten slides a lesson with its votes, into build/slides (LESSON=04a)
	@$(PY) -c 'import sphinx_revealjs, latex2mathml' 2>/dev/null || $(PIP) '.[dev,slides]'
	@$(PY) notebooks/slides.py $(LESSON)

wheelhouse: $(STAMP) ## every wheel for a room without net, into build/wheelhouse
	@$(PY) deploy/wheelhouse.py $(ARGS)

# The wheel, not the checkout, is installed here: as on the machine that serves a class.
test-class: $(STAMP) ## what a teacher uses: wheelhouse, nbgrader, eight users on a JupyterHub
	@test -x .venv-class/bin/python || $(PY) -m venv .venv-class
	@.venv-class/bin/python $(INSTALL) '.[dev,nbgrader,hub]'
	@if ! $(HAS_LINKER); then .venv-class/bin/python $(INSTALL) '.[linker]'; fi
	@.venv-class/bin/python -m pytest -q -s tests/classroom $(ARGS)

# Nothing of a lesson is run: the pages show what is stored.
site: $(STAMP) ## the workbook as static pages, into build/site (half a minute)
	@$(PY) -c 'import myst_nb, sphinx_book_theme, latex2mathml' 2>/dev/null || $(PIP) '.[dev,site]'
	@$(PY) docs/build.py

test-site: site ## look at every page in Chromium: phone, zoom, axe, search, paper
	@$(PY) -c 'import playwright, axe_playwright_python, pypdf' 2>/dev/null || $(PIP) '.[dev,test-site]'
	@sh tests/install_chromium.sh
	@$(PY) -m pytest -q -n 2 tests/site $(ARGS)

handout: site ## a lesson as a PDF for paper: make handout LESSON=01a (ANSWERS=1: with solutions)
	@$(PY) -c 'import playwright' 2>/dev/null || $(PIP) '.[dev,site,browser]'
	@sh tests/install_chromium.sh
	@$(PY) docs/handout.py "$(or $(LESSON),01a)" $(if $(ANSWERS),--answers)

# The lessons' sources keep the form in which jupytext writes cells, so ruff leaves them.
lint: $(STAMP) ## look for faults of style, types and spelling
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check --quiet . || $(PY) -m ruff format --diff .
	@$(PY) -m mypy
	@$(PY) -m codespell_lib
	@.venv/bin/clang-format --dry-run --Werror kernels/*.cl
	@$(PY) -m check_jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

ci: lint test test-devices test-browser ## what every change has to pass (35 minutes)

# An environment of its own, with the newest of everything; what it got is what is written down.
constraints: $(STAMP) ## write the newest versions into constraints.txt; then `make ci`
	@rm -rf .venv-newest && $(PY) -m venv .venv-newest && mkdir -p build
	@.venv-newest/bin/python -m pip install -qq --disable-pip-version-check -e \
		'.[dev,intel,linker,browser,slides,site,test-site,nbgrader,hub]'
	@{ head -n 1 constraints.txt; .venv-newest/bin/python -m pip freeze --exclude-editable; } \
		> build/constraints.txt && mv build/constraints.txt constraints.txt
	@rm -rf .venv-newest

clean: ## remove what was built, and the environment
	rm -rf .venv .venv-* build dist .pytest_cache .hypothesis .ruff_cache .mypy_cache

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
