# `make` lists the targets. Every target sets up .venv first; where that is done, it takes no time.

VENV = .venv
BIN = $(VENV)/bin
# The interpreters to try. `make setup PYTHON=/path/to/python` names one.
PYTHON = python3.13 python3.12 python3.11 python3 python
# The versions that are known to work. `make setup CONSTRAINTS=/dev/null`, without a .venv, takes the newest that setup.cfg
# allows.
CONSTRAINTS = constraints.txt

# Where `make play` serves.
HOST = 127.0.0.1
PORT = 8080

# Programs that `make faults` kills.
KILLS = 200

# What `make notebooks` stores: no times, and what a cell prints as one text.
STORED = --ExecutePreprocessor.record_timing=False --ExecutePreprocessor.coalesce_streams=True

GAME = tictactoe
NAME = $(or $(SERAPHIM_MODEL_NAME),my-$(subst :,-,$(GAME)))

IS_RIGHT = import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
HAS_VENV = import venv, ensurepip

# The stamps of what was set up mean nothing once the Python behind it is gone.
_ := $(shell test -x $(BIN)/python || rm -f $(VENV)/.created $(VENV)/.installed $(VENV)/.playable $(VENV)/.documentable)

.PHONY: help setup play learn docs notebooks test test-all licenses audit faults planted-faults format lock
.DEFAULT_GOAL = help

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24

setup: $(VENV)/.installed ## Set up .venv with everything needed to train and to run the tests

play: $(VENV)/.playable ## Open the explorer in the browser, at PORT (default 8080); installs less
	$(BIN)/python bin/serve.py --host=$(HOST) --port=$(PORT) --open

learn: setup ## Train a model NAME (default my-GAME) of GAME (default tictactoe) until it plays perfectly
	$(BIN)/python bin/learn.py $(NAME) --game=$(GAME)

docs: $(VENV)/.documentable ## Build the documentation as a web site in site/
	$(BIN)/python docs/make_site.py --out=site
	@echo "Look at it: $(BIN)/python -m http.server --directory site --bind 127.0.0.1"

notebooks: setup ## Run the notebooks, and store what they show
	$(BIN)/jupyter-nbconvert --execute --inplace $(STORED) notebooks/*.ipynb

test: setup ## Lint, type check and run the tests that a person waits for; coverage of seraphim/ >= 90 %
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/coverage erase
	$(BIN)/python tests/support/cpu_seconds.py \
		$(BIN)/python -m pytest -m "not slow" --numprocesses=2 --dist=loadfile --max-worker-restart=0 --durations=30 --cov --cov-report=
	$(BIN)/coverage report --fail-under=90

test-all: test node_modules/.installed ## Also the slow tests: browser, cluster, solver, kernels interpreted and bounds-checked
	$(BIN)/python -m pytest -m slow --numprocesses=2 --dist=loadfile --max-worker-restart=0 --durations=30 --cov --cov-append --cov-report=
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m kernels --numprocesses=2 --dist=loadfile --max-worker-restart=0 --cov --cov-append --cov-report=
	COMPILED='(?!)' $(BIN)/coverage report --fail-under=90
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -m kernels --numprocesses=2 --dist=loadfile --max-worker-restart=0

licenses: setup ## List the licenses of the dependencies; fails if one is not compatible with Seraphim's
	$(BIN)/python .ci/licenses

audit: setup ## Check the pinned versions against the list of known vulnerabilities, where it can be reached
	PYTHON=$(BIN)/python .ci/audit

faults: setup ## Fault injection: 200 kills, damaged files, full disks; takes 20 minutes, less with KILLS=20
	$(BIN)/python tests/support/faults.py --kills=$(KILLS)

planted-faults: setup ## Plant classic mistakes, one at a time: the tests catch >= 90 %; takes 20 minutes; ONLY=NAME for one
	$(BIN)/python tests/support/plant.py $(if $(ONLY),--only=$(ONLY))

format: setup ## Format the code the way `make test` expects
	$(BIN)/ruff check --select=I --fix
	$(BIN)/ruff format

lock: setup ## Pin the installed versions in constraints.txt (after: rm -r .venv; make setup CONSTRAINTS=/dev/null)
	@{ echo "# Versions that run together. Written by \`make lock\`."; $(BIN)/pip freeze --all --exclude=pip --exclude-editable; } > constraints.txt

# This stamp is newer than what decides about the installed packages.
$(VENV)/.installed: setup.cfg pyproject.toml $(wildcard $(CONSTRAINTS)) | $(VENV)/.created
	@echo "Installing the dependencies into $(VENV): about 2 GB, a few minutes."
	$(BIN)/python -m pip install --disable-pip-version-check --constraint=$(CONSTRAINTS) --editable='.[train,dev]'
	@touch $@

$(VENV)/.playable: setup.cfg pyproject.toml $(wildcard $(CONSTRAINTS)) | $(VENV)/.created
	@echo "Installing what playing takes into $(VENV): about 600 MB, a minute or two."
	$(BIN)/python -m pip install --disable-pip-version-check --constraint=$(CONSTRAINTS) --editable='.[serve]'
	@touch $@

$(VENV)/.documentable: setup.cfg pyproject.toml $(wildcard $(CONSTRAINTS)) | $(VENV)/.created
	@echo "Installing what the documentation takes into $(VENV): a minute or two."
	$(BIN)/python -m pip install --disable-pip-version-check --constraint=$(CONSTRAINTS) --editable='.[docs]'
	@touch $@

# What the engine in the browser runs on, and what checks the pages. Without npm the tests of these say so and skip.
node_modules/.installed: package.json package-lock.json
	@if npm --version >/dev/null 2>&1; \
	then npm ci --ignore-scripts --no-audit --no-fund && touch $@; \
	else echo "No npm here: the tests of the engine in the browser will be skipped (Debian: apt install npm)"; fi

# A shim may answer to a name without having that Python, so each candidate is tried by running it. A .venv that works
# is kept; one whose creation was interrupted, or whose Python is gone, is made anew.
$(VENV)/.created:
	@if $(BIN)/python -c '$(IS_RIGHT)' 2>/dev/null && $(BIN)/python -m pip --version >/dev/null 2>&1; \
	then touch $@; exit; fi; \
	for python in $(PYTHON); do \
		$$python -c '$(IS_RIGHT)' >/dev/null 2>&1 || continue; \
		right="$$right $$python"; \
		$$python -c '$(HAS_VENV)' >/dev/null 2>&1 || continue; \
		echo "Creating $(VENV) with $$($$python --version)"; \
		$$python -m venv --clear $(VENV) && touch $@; exit; \
	done; \
	if [ -n "$$right" ]; \
	then echo "Found$$right, but without the modules venv and ensurepip: install them (Debian: apt install python3-venv)"; \
	else echo "Found no Python 3.11, 3.12 or 3.13 (tried: $(PYTHON)): install one, or say: make PYTHON=/path/to/python"; \
	fi >&2; exit 1
