# `make demo` shows what dprec does, `make test` checks that it does it, `make test-all` checks more thoroughly,
# `make docs` builds the documentation.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Compiled tests are kept, so that the processes that share them compile each once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all docs clean

demo: $(VENV)/run.stamp
	$(BIN)/dprec compare compare-quick

test: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -m "not thorough"

test-all: test
	$(BIN)/pytest -m thorough

docs: $(VENV)/docs.stamp
	$(BIN)/sphinx-build -W --keep-going -n -q -E -b html docs docs/_build/html

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dprec needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --constraint constraints.txt --editable .
	touch $@

$(VENV)/test.stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --constraint constraints.txt --editable '.[test]'
	touch $@

$(VENV)/docs.stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --constraint constraints.txt --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) docs/_build
