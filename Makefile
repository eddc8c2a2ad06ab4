# Attention Labs. `make lab` is all that a student needs; `make help` says the rest.
#
# Works in a folder whose path has spaces or letters of any script: every target is relative.
# PYTHON picks the interpreter, PIP_ARGS goes to pip when packages are installed, MODELS=0 leaves the
# pretrained models out: they come last, and without a network set-up is whole without them.

SHELL := /bin/sh
IN_RANGE := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	if "$$p" -c '$(IN_RANGE)' 2>/dev/null; then echo "$$p"; break; fi; done)
endif
PIP_ARGS ?=
# One test process a core; the tests of a file stay together, since they share what is dear to make.
WORKERS ?= -n logical --dist loadfile
PY := .venv/bin/python
READY := .venv/.ready

.PHONY: help lab setup test smoke lint solutions release site records traces clean

help:
	@echo "make lab       set up once, then open the notebooks in JupyterLab"
	@echo "make setup     only set up: a virtual environment in .venv with pinned packages"
	@echo "make test      everything that must hold: style, types, all tests, all notebooks (minutes)"
	@echo "make smoke     the fast tests only"
	@echo "make lint      style and types only"
	@echo "make solutions compare every solution notebook with its stored outputs"
	@echo "make release   write the notebooks from solutions/*.md"
	@echo "make site      make the course's pages for reading, with live explorers, in build/site"
	@echo "make records   make the recorded trainings in data/records anew (about an hour)"
	@echo "make traces    make the recorded traces of kernels in data/traces anew (seconds)"
	@echo "make clean     remove .venv and caches; your answers and progress stay"

lab: $(READY)
	@$(PY) -m labs_lib.cli start

setup: $(READY)

# The stamp holds the folder it was made in: a checkout that was moved or copied is set up again.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

$(READY): requirements.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "No Python 3.11, 3.12 or 3.13 found. Install one, or name it: make lab PYTHON=/path/to/python3.12"; \
		exit 1; fi
	@"$(PYTHON)" -c '$(IN_RANGE)' || { \
		echo "$(PYTHON) is not Python 3.11, 3.12 or 3.13. Name one that is: make lab PYTHON=python3.12"; \
		exit 1; }
	@rm -f $(READY)
	@echo "Setting up .venv with $$("$(PYTHON)" --version); this is done once and takes some minutes."
	@"$(PYTHON)" -m venv .venv || { \
		rm -rf .venv; \
		echo "No virtual environment could be made. On Debian and Ubuntu: sudo apt install python3-venv"; \
		exit 1; }
	$(PY) -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements.lock
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@pwd -P > $(READY)
ifneq ($(MODELS),0)
	@$(PY) -m labs_lib.cli models get || true
endif

lint: $(READY)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m ty check --output-format concise

test: lint
	$(PY) -m pytest $(WORKERS) tests
	$(MAKE) solutions

# nbval proves the stored outputs of every solution, cell by cell.
solutions: $(READY)
	$(PY) -m pytest -q $(WORKERS) -p no:cacheprovider --nbval --nbval-current-env solutions

# ROOMS narrows it: make smoke ROOMS=tests/notebook
ROOMS ?= tests
smoke: $(READY)
	$(PY) -m pytest $(WORKERS) -m "not slow" $(ROOMS)

release: $(READY)
	$(PY) -m labs_lib.cli release

site: $(READY)
	@$(PY) -m labs_lib.authoring.site

records: $(READY)
	$(PY) -m labs_lib.training.records
	$(PY) -m labs_lib.training.kept
	$(PY) -m labs_lib.models.studies

traces: $(READY)
	$(PY) -m labs_lib.cuda.recorded

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build *.egg-info
	find labs_lib tests -name __pycache__ -type d -prune -exec rm -rf {} +
