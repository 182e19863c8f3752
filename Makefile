# `make demo` and `make test` set up everything they need in .venv; the rest is for people who work on the code.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= demo

.PHONY: demo test test-slow test-conformance lint format study1 clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e ".[test,tracking,slurm]"
	touch $@

demo: $(VENV)/.installed
	$(BIN)/posgen sweep quickstart --out $(OUT)

test: $(VENV)/.installed
	$(BIN)/python -m pytest -q -n 2

test-slow: $(VENV)/.installed
	$(BIN)/python -m pytest -q -n 2 -m slow

test-conformance: $(VENV)/.installed
	$(BIN)/python scripts/test_conformance.py

study1: $(VENV)/.installed
	$(BIN)/python scripts/reproduce_study1.py --out study1

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist src/*.egg-info
