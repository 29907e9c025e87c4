# `make run` and `make test` do all the set-up by themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Runs start half a second faster from byte code, whatever the shell says of writing it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test archive unit check bench bench-peers docs screenshots clean setup

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 13

setup: $(READY)
	@$(BIN)/python -m penstock.spark.java || sh tools/install-java

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Penstock needs Python 3.11 or later; $(PYTHON) is older. Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "setting up $(VENV): Spark is 400 MB, this takes a minute or two"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

run: setup  ## Run the main example to its end: how many people did a link reach?
	@$(BIN)/penstock run examples/url-reach

test: setup archive check unit  ## Everything that continuous integration runs
	@$(BIN)/pytest -n 2 --dist loadgroup --durations=15 -m 'not by_itself' tests/spark tests/system
	@$(BIN)/pytest --durations=30 -m by_itself tests/system

# Beside what follows: all later starts of Spark take half the time.
archive: setup
	@$(BIN)/python -m penstock.spark.archive_maker >/dev/null 2>&1 &

unit: setup  ## The tests that need no Spark, in seconds
	@$(BIN)/pytest -n 2 tests/unit

check: setup  ## Types and style
	@$(BIN)/ruff check src tests examples tools benchmarks
	@$(BIN)/mypy

bench: setup  ## Measure against hand-written Spark, and what our own parts cost; takes a while, BENCH=throughput for less
	@$(BIN)/python benchmarks/against_spark.py $(BENCH)

bench-peers: setup  ## Measure beside PyFlink, Bytewax, Pathway and PySpark; an hour or more, PEERS=--quick for less
	@$(BIN)/python benchmarks/peers.py $(PEERS)

screenshots: setup  ## Make the pictures of the console anew, in a browser
	@PENSTOCK_SCREENSHOTS=docs/images $(BIN)/pytest -q tests/system/test_console_page.py

docs: setup  ## Write the generated reference pages again
	@$(BIN)/python tools/write_reference.py

clean:  ## Remove the virtual environment and what runs have left
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
	find examples -name out -o -name .penstock -o -name dead-letters | xargs rm -rf
