# make demo    set up .venv, build and install the wheel, compile the example kernels, print a table
# make test    set up .venv, build the overlay, run lit (test/) and pytest (python/test)
# make test-long  run the cases that `make test` leaves out (the whole product of test_numerics.py)
# make test-gpu  run the checks of python/test/gpu on a CUDA GPU
# make wheel   write dist/triton-3.9.0+revscan.1-*.whl
# make release build the wheels of all Pythons that upstream has wheels for, check each in a fresh
#              venv, and write dist/ with SHA256SUMS; TAGS="cp311 cp312" chooses, TWICE=1 compares
#              the bytes of two builds
# make overlay bring build/overlay/<python tag>/ up to date; seconds after the first time
# make fuzz    check N scans (20000) of random layouts and operators; SEED=... repeats a run,
#              TARGET=hip:gfx942 (gfx90a, gfx950, gfx1100, gfx1200) takes AMD's lowering
# make mutants break the lowering in many ways, and see that the tests notice; long
# make docs    build the documentation into build/docs; make check-docs runs its examples too
# make wheel-source  compile Triton from source with the lowering inside, and write its wheel to dist/;
#              needs LLVM 22's packages (docs/source-base.md)
# make test-source  the same as an overlay in .venv-source; upstream's lit tests, our own, and pytest
# make test-source-assertions  the lit tests of both on a build without NDEBUG
# make check-source  see only that the patches apply and our own files compile in that base
# make format, make check-format, make clean
# PYTHON=python3.12 chooses the Python that .venv is made from.

PYTHON ?= python3
GPU_PYTHON ?= $(PYTHON)
PYTEST_ARGS ?=
# A file stays in one process, so that what its tests share is made once.
PARALLEL ?= -n 2 --dist loadfile
N ?= 20000
SEED ?=
TARGET ?=
TAGS ?=
TWICE ?=
LIT_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
SOURCE_VENV := .venv-source
SOURCE_BIN := $(SOURCE_VENV)/bin
HELPERS := python/build_helpers
CXX_FILES = $(shell find include lib -name '*.cpp' -o -name '*.h')

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-gpu lit pytest fuzz mutants overlay wheel release docs check-docs refresh-patches format check-format clean tools python-tools

help:
	@sed -n '/^# make/s/^# //p' Makefile

# Says what a bare machine lacks before anything long starts.
python-tools:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is missing or older than 3.11; set PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "error: $(PYTHON) cannot make a venv: apt-get install python3-venv" >&2; exit 1; }

tools: python-tools
	@command -v $${CXX:-g++} >/dev/null || command -v g++-12 >/dev/null || { \
	  echo "error: there is no C++ compiler: apt-get install g++" >&2; exit 1; }

$(VENV)/.ready: python/requirements-test.txt | python-tools
	@echo "[venv] making $(VENV) and installing python/requirements-test.txt"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r python/requirements-test.txt
	@touch $@

demo: tools $(VENV)/.ready
	@$(BIN)/python $(HELPERS)/install.py wheel
	@$(BIN)/python examples/demo/demo.py

test: lit pytest

lit: tools $(VENV)/.ready
	@$(BIN)/python $(HELPERS)/install.py overlay
	@$(BIN)/lit -v $(LIT_ARGS) test

pytest: tools $(VENV)/.docs-ready
	@$(BIN)/python $(HELPERS)/install.py overlay
	@$(BIN)/python -m pytest $(PARALLEL) $(PYTEST_ARGS) python/test

# The 4,452 cases of test_numerics.py that `make test` leaves out.
test-long: tools $(VENV)/.ready
	@$(BIN)/python $(HELPERS)/install.py overlay
	@$(BIN)/python -m pytest -m long $(PARALLEL) $(PYTEST_ARGS) python/test

# GPU_PYTHON has PyTorch; it takes the overlay's triton, whose Python it must match.
test-gpu: tools $(VENV)/.ready
	@$(BIN)/python $(HELPERS)/install.py overlay
	@PYTHONPATH=$$($(BIN)/python -c 'import triton; print(triton.__path__[0] + "/..")') \
	  $(GPU_PYTHON) python/test/gpu/run.py

fuzz: tools $(VENV)/.ready
	@$(BIN)/python $(HELPERS)/install.py overlay
	@PYTHONPATH=python/test TRITON_DEFAULT_FP_FUSION=1 $(BIN)/python -m fuzz $(N) \
	  $(if $(SEED),--seed $(SEED)) $(if $(TARGET),--target $(TARGET))

mutants: tools $(VENV)/.ready
	@nice $(BIN)/python python/test/mutation

overlay: tools $(VENV)/.ready
	@$(BIN)/python $(HELPERS)/overlay.py

wheel: tools $(VENV)/.ready
	@$(BIN)/python $(HELPERS)/wheel.py dist

release: tools $(VENV)/.ready
	@$(BIN)/python $(HELPERS)/release.py $(if $(TAGS),--tags $(TAGS)) $(if $(TWICE),--twice)

# The source base (docs/source-base.md).
.PHONY: wheel-source test-source test-source-assertions check-source

wheel-source: python-tools $(VENV)/.ready
	@$(BIN)/python $(HELPERS)/source_wheel.py dist

check-source: python-tools $(VENV)/.ready
	@$(BIN)/python $(HELPERS)/source_build.py --check

$(SOURCE_VENV)/.ready: python/requirements-test.txt | python-tools
	@echo "[venv] making $(SOURCE_VENV) and installing python/requirements-test.txt"
	@$(PYTHON) -m venv $(SOURCE_VENV)
	@$(SOURCE_BIN)/python -m pip install -qq --disable-pip-version-check -r python/requirements-test.txt
	@touch $@

test-source: python-tools $(SOURCE_VENV)/.ready
	@$(SOURCE_BIN)/python $(HELPERS)/source_test.py

test-source-assertions: python-tools $(SOURCE_VENV)/.ready
	@$(SOURCE_BIN)/python $(HELPERS)/source_test.py --assertions

# Rewrites patches/ from the files that were edited in the overlay.
refresh-patches: $(VENV)/.ready
	@$(BIN)/python $(HELPERS)/overlay.py --refresh-patches

$(VENV)/.docs-ready: docs/requirements.txt $(VENV)/.ready
	@echo "[venv] installing docs/requirements.txt"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r docs/requirements.txt
	@touch $@

# The reference pages and the drawings import the patched triton.
docs: tools $(VENV)/.docs-ready
	@$(BIN)/python $(HELPERS)/install.py overlay
	@TRITON_DEFAULT_FP_FUSION=1 $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going \
	  --fresh-env --write-all -b html -d build/docs-state docs build/docs
	@echo "[docs] build/docs/index.html"

check-docs: docs
	@$(BIN)/python -m pytest -q python/test/test_docs.py

format: $(VENV)/.ready
	@$(BIN)/clang-format -i $(CXX_FILES)
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format --quiet .

check-format: $(VENV)/.ready
	@$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .

# Keeps .cache, so that nothing has to be fetched again.
clean:
	rm -rf build dist $(VENV) $(SOURCE_VENV) triton.egg-info
