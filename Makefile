# `make demo` and `make test` set up everything they need in .venv; the rest is for people who work on the code.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= demo
# The explorable report is tested in a real browser; where there is none those tests are left out, and said to be.
BROWSER := $(shell command -v chromium chromium-browser google-chrome google-chrome-stable chrome 2>/dev/null | head -n 1)
MARKS := not slow$(if $(BROWSER),, and not browser)

.PHONY: demo test test-slow test-conformance lint format study1 study2 clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e ".[test,tracking,slurm]"
	touch $@

demo: $(VENV)/.installed
	$(BIN)/posgen sweep quickstart --out $(OUT)

test: $(VENV)/.installed
	@$(if $(BROWSER),true,echo "no Chromium found: the browser tests of report.html are left out")
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m "$(MARKS)"

test-slow: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m slow

test-conformance: $(VENV)/.installed
	$(BIN)/python scripts/test_conformance.py

study1: $(VENV)/.installed
	$(BIN)/python scripts/reproduce_study1.py --out study1

study2: $(VENV)/.installed
	$(BIN)/python scripts/reproduce_study2.py --out study2 $(if $(wildcard study1/results.jsonl),--study1 study1)

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist src/*.egg-info
