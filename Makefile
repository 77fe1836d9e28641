# Every target sets up .venv by itself when something it is built from has changed.

PYTHON ?= python3
# Where Linux finds torch without CUDA; used when it answers. Empty: let pip choose.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
# More arguments for the command behind a target: make test ARGS="-k sketch"
ARGS ?=

export TORCH_INDEX
# Every test and the demo start many processes: each would compile our packages anew.
unexport PYTHONDONTWRITEBYTECODE

IN_VENV := .venv/bin/python
READY := .venv/ready
MADE_WITH := .venv/made-with

.DEFAULT_GOAL := help
.PHONY: help demo test test-long lint bench

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo '  ARGS="…" adds arguments (make test ARGS="-k sketch"); PYTHON=… names the Python to build .venv with.'

demo: $(READY) ## Run two whole campaigns on this machine: aggregator, five sites, owner
	@$(IN_VENV) -m tacit_client.cli demo $(ARGS)

# One thread in each test process: thread pools on the same cores get in each other's way. Three on two cores, for a process
# often waits for the servers it has started; whichever has nothing left to do takes tests from the others.
test test-long: export OMP_NUM_THREADS := 1
test test-long: SPREAD := -n 3 --dist worksteal

test: $(READY) ## Run the tests, all but the long ones
	@$(IN_VENV) -m pytest $(SPREAD) -m "not long" $(ARGS)

test-long: $(READY) ## Run the long tests
	@$(IN_VENV) -m pytest $(SPREAD) -m long $(ARGS)

lint: $(READY) ## Check style, format and types
	@$(IN_VENV) -m ruff check .
	@$(IN_VENV) -m ruff format --check .
	@$(IN_VENV) -m mypy $(ARGS)

bench: $(READY) ## Run every benchmark; ends with the bars that do not hold
	@$(IN_VENV) -m benchmarks $(ARGS)

# A .venv names its own place in many files: in a copied or moved tree it would run the code of the old one.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif
# Whoever names a Python means that one, not the one that .venv was made with.
ifneq ($(origin PYTHON),file)
ifneq ($(shell cat $(MADE_WITH) 2>/dev/null),$(PYTHON))
.PHONY: $(READY)
endif
endif

$(READY): constraints.txt requirements-dev.txt $(wildcard core/pyproject.toml services/*/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Tacit needs Python 3.11 or newer, but '$(PYTHON) --version' says: $$($(PYTHON) --version 2>&1 | head -n 1)"; \
	  echo "Name another Python, for example: make $(or $(firstword $(MAKECMDGOALS)),test) PYTHON=python3.12"; \
	  exit 1; } >&2
	@$(PYTHON) -m scripts.setup_venv $^
	@echo '$(PYTHON)' > $(MADE_WITH)
