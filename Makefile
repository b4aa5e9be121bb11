# `make demo` and `make test` install what they need into .venv first.
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check

.PHONY: demo test long lint benchmark clean

demo: $(VENV)/.demo
	$(VENV)/bin/onset validate single-location --preset demo

test: $(VENV)/.test
	$(VENV)/bin/pytest -m "not long" --numprocesses auto --dist loadfile

# Validations of minutes, which CI leaves out.
long: $(VENV)/.test
	$(VENV)/bin/pytest -m long

lint: $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright

benchmark: $(VENV)/.demo
	$(VENV)/bin/python benchmarks/sweep.py

$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.test: $(VENV)/.demo
	$(PIP) install --quiet --constraint constraints.txt --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache .hypothesis
