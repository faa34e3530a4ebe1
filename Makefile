# `make` lists the targets. Every target sets up .venv first; where that is done, it takes no time.

VENV = .venv
BIN = $(VENV)/bin
# The interpreters to try. `make setup PYTHON=/path/to/python` names one.
PYTHON = python3.13 python3.12 python3.11 python3 python
# The versions that are known to work. `make setup CONSTRAINTS=/dev/null` takes the newest that setup.cfg allows.
CONSTRAINTS = constraints.txt

# Where `make play` serves.
HOST = 127.0.0.1
PORT = 8080

# Programs that `make faults` kills.
KILLS = 200

GAME = tictactoe
NAME = $(or $(SERAPHIM_MODEL_NAME),my-$(GAME))

IS_RIGHT = import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
HAS_VENV = import venv, ensurepip

# The stamps of what was set up mean nothing once the Python behind it is gone.
_ := $(shell test -x $(BIN)/python || rm -f $(VENV)/.created $(VENV)/.installed $(VENV)/.playable)

.PHONY: help setup play learn test faults audit format lock
.DEFAULT_GOAL = help

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup: $(VENV)/.installed ## Set up .venv with everything that learning and the tests need

play: $(VENV)/.playable ## Play the models that come with Seraphim in the browser, at PORT (default 8080); sets up less
	$(BIN)/python bin/serve.py --host=$(HOST) --port=$(PORT) --open

learn: setup ## Learn GAME (default tictactoe) until the model NAME (default my-GAME) is perfect
	$(BIN)/python bin/learn.py $(NAME) --game=$(GAME)

test: setup node_modules/.installed ## Lint, type check and test, compiled and, for the kernels, interpreted and bounds-checked; coverage of seraphim/ >= 90 %
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/coverage erase
	$(BIN)/python -m pytest --cov --cov-report=
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m kernels --cov --cov-append --cov-report=
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -m kernels
	$(BIN)/coverage report --fail-under=90

audit: setup ## Look the pinned versions up in the list of known vulnerabilities, where that can be reached
	PYTHON=$(BIN)/python .ci/audit

faults: setup ## Try to ruin runs: 200 kills, damaged files, full disks; takes long, KILLS=20 takes less
	$(BIN)/python tests/support/faults.py --kills=$(KILLS)

format: setup ## Format the code as `make test` wants it
	$(BIN)/ruff check --select=I --fix
	$(BIN)/ruff format

lock: setup ## Pin the installed versions in constraints.txt (after: make setup CONSTRAINTS=/dev/null)
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
