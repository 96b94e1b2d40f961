# Two commands do everything on a fresh machine: make demo, make test.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
SOURCES = pyproject.toml CMakeLists.txt $(wildcard cpp/*.?pp cpp/*/*.?pp)

.PHONY: demo test check stress fuzz campaign sanitize mutants coverage dependencies audit net lint types \
        bench microbench docs wheel clean

demo: $(VENV)/.installed
	$(BIN)/sipower demo --out build/demo --force

test: lint types
	$(BIN)/python -m pytest -n 2

check: lint types            ## a subset of about three minutes
	$(BIN)/python -m pytest -n 2 -m "not slow and not stress"

# What takes longer than a commit should; TESTING.md says what each promises and last found.
stress: $(VENV)/.tools       ## generated fits, interruptions, damaged files, killed runs
	$(BIN)/python -m pytest -n 2 -m stress

fuzz: $(VENV)/.tools         ## 220,000 strange arguments and files, the last chosen by atheris
	$(BIN)/python -m pip install --quiet --group fuzz
	$(BIN)/python fuzz/bindings.py --inputs 150000 --seed 0
	$(BIN)/python fuzz/readers.py --inputs 50000 --seed 0
	$(BIN)/python fuzz/readers.py --inputs 20000 --seed 0 --guided

campaign: $(VENV)/.tools     ## 100,000 generated fits and 1,000,000 fuzzed inputs, about 15 minutes; resumable
	$(BIN)/python tools/campaign.py

sanitize: $(VENV)/.tools     ## kernels and bindings under address, undefined, thread and bounds checks
	$(BIN)/python tools/sanitize.py

mutants: $(VENV)/.tools      ## does a test notice each changed line of the core?
	$(BIN)/python -m pip install --quiet --group mutants
	$(BIN)/python tools/mutants.py

coverage: $(VENV)/.tools     ## lines of Python and of C++ that the tests reach
	PYTHON=$(BIN)/python bash tools/coverage.sh

dependencies: $(VENV)/.tools ## the oldest and the newest versions that pyproject.toml allows
	$(BIN)/python -m pip install --quiet --group audit
	$(BIN)/python tools/dependencies.py

audit: $(VENV)/.tools        ## hashes, advisories and licences of all that is installed
	$(BIN)/python -m pip install --quiet --group audit
	$(BIN)/python tools/audit.py

# Factors, traces, tables, run folders, messages and help pages of a case for every public function and
# command, at most 3 minutes; with COMMIT=..., what differs from that commit on this machine.
net: $(VENV)/.tools
	$(BIN)/python tools/net.py $(if $(COMMIT),--compare $(COMMIT))

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports
	$(BIN)/python tools/check_lengths.py
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/python tools/check_schemas.py

types: $(VENV)/.tools
	$(BIN)/mypy

# Four generated data sets, 2 to 3 minutes; writes docs/benchmark/small.md and small.png.
bench: $(VENV)/.tools
	rm -f build/small.parquet
	$(BIN)/benchopt run benchmarks/benchopt --config benchmarks/benchopt/small.yml --output build/small.parquet
	$(BIN)/python benchmarks/benchopt/report.py build/small.parquet

microbench: $(VENV)/.tools   ## single parts: kernels, reading, sampling, clusters and others
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/passes.py
	$(BIN)/python benchmarks/transform.py
	$(BIN)/python benchmarks/footprint.py
	$(BIN)/python benchmarks/estimates.py
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/mixture.py
	$(BIN)/python benchmarks/sampling.py
	$(BIN)/python benchmarks/pca.py
	$(BIN)/python benchmarks/cluster.py
	mkdir -p build/stores && $(BIN)/python benchmarks/out_of_core.py build/stores
	$(BIN)/python benchmarks/scaling.py build/stores

docs: $(VENV)/.tools         ## build/docs/index.html; a warning is an error
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs

# The sdist and a manylinux wheel made from it, both built twice with the same bytes, and all tests
# against that wheel in a clean environment; WHEEL_PYTHONS may name other Pythons, for the quick tests.
WHEEL_BIN = build/wheel-venv/bin
WHEEL_PYTHONS ?=
wheel: $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --group wheel
	$(BIN)/python tools/build_wheel.py
	bash tools/install_wheel.sh $(PYTHON)
	$(WHEEL_BIN)/python -m pytest -n 2
	for python in $(WHEEL_PYTHONS); do bash tools/install_wheel.sh $$python && \
	  $(WHEEL_BIN)/python -m pytest -n 2 -m "not slow and not stress" || exit 1; done

$(VENV)/.installed: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	touch $@

$(VENV)/.tools: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

clean:
	rm -rf $(VENV) build dist docs/gallery docs/api/generated
