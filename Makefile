# Two commands do everything on a fresh machine: make demo, make test.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
SOURCES = pyproject.toml CMakeLists.txt $(wildcard cpp/*)

.PHONY: demo test check lint types unit bench clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: lint types
	$(BIN)/python -m pytest -n 2

check: lint types            ## a subset of about three minutes
	$(BIN)/python -m pytest -n 2 -m "not slow"

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports

types: $(VENV)/.tools
	$(BIN)/mypy

bench: $(VENV)/.tools
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/passes.py
	$(BIN)/python benchmarks/transform.py
	$(BIN)/python benchmarks/footprint.py
	$(BIN)/python benchmarks/mixture.py
	$(BIN)/python benchmarks/pca.py

$(VENV)/.installed: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.tools: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

clean:
	rm -rf $(VENV) build dist
