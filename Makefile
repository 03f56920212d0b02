# `make demo` shows what dprec does, `make test` checks that it does it, `make test-all` checks more thoroughly,
# `make nightly` checks what documents type, `make docs` builds them, `make release` builds what is released,
# `make results` makes the committed tables and figures anew.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# The distribution next door, where it is.
PILOT := $(wildcard pilot/pyproject.toml)

.PHONY: demo test test-all results results-check nightly docs release clean

demo: $(VENV)/run.stamp
	$(BIN)/dprec compare compare-quick

test: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
ifneq ($(PILOT),)
	$(BIN)/mypy pilot/dprec_pilot
	$(BIN)/lint-imports --no-logo --config pilot/pyproject.toml
endif
	$(BIN)/pytest -m "not thorough and not nightly"

test-all: test
	$(BIN)/pytest -m "thorough and not nightly"

# What is committed is run anew, table by table; DATA is the folder of the data sets.
results: $(VENV)/test.stamp
	$(BIN)/python -m docs.tables.remake $(if $(DATA),--data $(DATA))

results-check: $(VENV)/test.stamp
	$(BIN)/python -m docs.tables.remake --check $(if $(DATA),--data $(DATA))

nightly: $(VENV)/test.stamp
	$(BIN)/pytest -m nightly

docs: $(VENV)/test.stamp
	$(BIN)/sphinx-build -W --keep-going -n -q -E -b html docs docs/_build/html

release: $(VENV)/run.stamp $(VENV)/release.stamp
	$(BIN)/python -m release

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dprec needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)

# What is locked is installed by hash; then this checkout, with nothing else.
$(VENV)/%.stamp: requirements/%.txt pyproject.toml $(PILOT) | $(VENV)/bin/python
	@echo "Installing what $< locks into $(VENV): one to three minutes"
	$(PIP) install --require-hashes --requirement $<
	$(PIP) install --no-deps --no-build-isolation --editable . $(if $(PILOT),--editable ./pilot)
	touch $@

clean:
	rm -rf $(VENV) docs/_build
