# Two commands for a newcomer: `make demo` and `make test`. The rest serve development.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# Corebound itself, which is all that the demo needs, and with the tools of development.
INSTALLED := $(VENV)/installed
READY := $(VENV)/ready
# The cheapest comparisons first: a busy machine has no time for all.
SCENARIOS := scenarios/gemm.yaml scenarios/resnet50-inference.yaml scenarios/several-processes.yaml
ENVIRONMENTS := $(patsubst environments/%.txt,%,$(wildcard environments/*.txt))
# The demo takes five minutes in all: measuring gets what installing leaves, at least two minutes.
# A running launch and the site take the last of them.
STARTED := $(shell date +%s)
BUDGET ?= $(shell left=$$((255 + $(STARTED) - $$(date +%s))); echo $$((left > 120 ? left : 120)))s
# Processes for tests that measure nothing. Those that launch wait for two thirds of their time, so
# three keep two CPUs busy; with four, some launches of tests are disturbed.
JOBS ?= 3
# Python compiles what is imported, once: compiling all of it takes longer than unpacking it.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest
PARALLEL := -n $(JOBS) --dist loadfile --no-loadscope-reorder
# What fails beside others runs again by itself: a launch of a test may be disturbed by the others,
# but a fault shows alone too. An interrupt, or whatever else than failed tests, stays a failure.
ALONE := { test $$? -eq 1 && $(PYTEST) --last-failed --last-failed-no-failures none; }

.DEFAULT_GOAL := help
.PHONY: help demo demo-environments made-pytorch made-numpy test test-rest test-all test-fleet test-python test-numa numa-machine fleet-packages fuzz environments check lint docs golden schema bench release clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

$(INSTALLED): pyproject.toml scripts/debian-packages
	@PYTHON="$(PYTHON)" scripts/debian-packages venv
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --editable .
	@touch $@

$(READY): $(INSTALLED)
	$(PIP_INSTALL) --editable '.[dev]'
	@touch $@

made-pytorch: $(INSTALLED)
	@$(BIN)/corebound environment make pytorch

made-numpy: $(INSTALLED)
	@$(BIN)/corebound environment make numpy --quiet >/dev/null

demo-environments: $(INSTALLED)
	@$(MAKE) --no-print-directory -j 2 made-pytorch made-numpy

demo: demo-environments ## measure this machine with PyTorch and NumPy, and write the site: 5 minutes
	@$(BIN)/corebound run $(SCENARIOS) --profile quick --budget $(BUDGET) --resume; \
	  code=$$?; case $$code in 0|4|5) ;; *) exit $$code ;; esac
	@echo "The site:"
	@$(BIN)/corebound report

test: $(READY) environments ## run unit, doc and browser tests, and integration tests of each kind
	@# In the order given: the longest files first, so that no process idles at the end.
	$(PYTEST) $(PARALLEL) -m "not integration or (quick and not measures)" \
	  tests/integration tests/browser tests/unit src || $(ALONE)
	$(PYTEST) -m "quick and measures" tests/integration

# The emulated machine keeps one process busy while the other runs fleets and integration tests.
test-rest: $(READY) environments numa-machine fleet-packages ## run the tests that `make test` leaves out
	$(PYTEST) $(PARALLEL) -m "not quick and not measures" tests/numa tests/fleet tests/integration || $(ALONE)
	$(PYTEST) -m "not quick and measures" tests/integration

test-all: $(READY) environments numa-machine fleet-packages ## run every test
	$(PYTEST) $(PARALLEL) -m "not measures" tests src || $(ALONE)
	$(PYTEST) -m measures tests/integration

test-fleet: $(READY) fleet-packages ## test fleets of three hosts: Dask, Slurm, and a generated Job of Kubernetes
	$(PYTEST) tests/fleet

test-python: $(READY) ## run the unit tests and the wheel under each Python that is found
	scripts/test-pythons

test-numa: $(READY) numa-machine ## test on a booted machine of two sockets and four cores with SMT
	$(PYTEST) tests/numa

fleet-packages:
	@scripts/debian-packages fleet

numa-machine: $(READY)
	@scripts/debian-packages numa
	tests/numa/numa-vm build

fuzz: $(READY) ## run the property tests with random seeds and more examples
	COREBOUND_HYPOTHESIS=fuzz $(PYTEST) $(PARALLEL) -m hypothesis tests/unit

environments: $(READY)
	@scripts/debian-packages tests
	@$(BIN)/corebound environment make $(ENVIRONMENTS)

check: lint docs test ## everything that has to hold before a push

lint: $(READY) ## style, types, the direction of imports, changelog fragments and plain English
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@# The worker also runs in environments with an older Python.
	$(BIN)/mypy --python-version 3.10 --no-warn-return-any src/corebound/worker
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/python scripts/check_changelog.py
	$(BIN)/python scripts/check_language.py
	$(BIN)/python scripts/check_weight.py

docs: $(READY) ## build the documentation into docs/_build; a broken link is an error
	$(BIN)/python -m sphinx --quiet --keep-going --fail-on-warning docs docs/_build
	@echo "The documentation: docs/_build/index.html"

golden: $(READY) ## write the expected pages anew; look at the difference
	COREBOUND_GOLDEN=write $(BIN)/python -m pytest -q -k golden tests/unit
	git diff --stat tests/golden

schema: $(READY) ## write the JSON Schemas of scenario and fleet files anew
	$(BIN)/corebound schema > docs/scenario.schema.json
	$(BIN)/corebound schema --of fleet > docs/fleet.schema.json

bench: $(READY) ## how fast corebound itself is
	$(BIN)/python -m benchmarks.harness

release: $(READY) ## build sdist and wheel into dist/ and check them in a fresh environment
	scripts/release-check $(BIN)/python

clean: ## remove what was made, but not the records
	rm -rf $(VENV) dist reports/site .mypy_cache .ruff_cache .pytest_cache .hypothesis
