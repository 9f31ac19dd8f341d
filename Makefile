SHELL := /bin/bash
.DEFAULT_GOAL := help

RUN := .venv/bin/python
# What is long, random or needs a quiet machine is left to `make soak`.
TEST := $(RUN) -m pytest -m "not soak"
# Whole files, the longest first.
BY_FILE := -n 2 --dist loadfile --no-loadscope-reorder
BENCH ?= all
# Printed after each stage of `make test`.
TIMED = TIMEFORMAT="== $@: %0R s"; time

# What decides, and needs neither Java, nor a browser, nor a cluster; the logs of collectors are Java's.
QUICK := $(addprefix tests/unit/,api model moves planner placement shedding grouping sizing)

.PHONY: help setup demo backtest test quick check unit spark cluster soak bench comparison dependencies generate format release site image clean
# The stages of `test` use both cores each.
.NOTPARALLEL:

help: ## Show this list
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: ## Get everything the project needs on a Debian or Ubuntu machine (as root)
	@scripts/setup.sh
	@$(RUN) -m tests.testbed binaries

demo: setup ## Run the main job: place and move executors of a real streaming job on a real control plane
	@$(RUN) -m examples.demo

backtest: setup ## Run history, backtest and recommendation on two days of a described pool
	@$(RUN) -m examples.backtest

test: setup check unit spark cluster ## Run every test and check that a change must pass: 15 minutes on two quiet cores

quick: ## Check format, lint, types and layers, and run the core's tests: a minute, as any user, without Java or a cluster
	@scripts/setup.sh --quick
	@.venv-quick/bin/ruff format --check operator tests benchmarks examples scripts
	@.venv-quick/bin/ruff check operator tests benchmarks examples scripts
	@.venv-quick/bin/lint-imports
	@.venv-quick/bin/mypy --cache-dir .mypy_cache/quick --exclude operator/ballast/spark/ operator $(QUICK)
	@.venv-quick/bin/python -m pytest -m "not soak" -n 2 --maxschedchunk 8 $(QUICK) --ignore=tests/unit/sizing/test_gc.py

check: ## Format, lint, types, layers, prose and generated files
	@scripts/setup.sh --python-only
	@test ! -e operator/__init__.py || { echo "operator/__init__.py hides the standard library's: delete it"; exit 1; }
	@$(TIMED) { .venv/bin/ruff format --check operator tests benchmarks examples scripts && \
	  .venv/bin/ruff check operator tests benchmarks examples scripts && \
	  .venv/bin/mypy operator tests benchmarks examples scripts && \
	  .venv/bin/lint-imports && \
	  $(RUN) -m tests.prose && \
	  .venv/bin/ballast crds --check; }

# One worker more than there are cores: tests of the controller wait for half of their time.
unit: ## Run the tests that need no control plane
	@$(TIMED) { $(TEST) -n 3 --maxschedchunk 8 tests/unit tests/properties tests/scenarios tests/charts tests/vectors && \
	  $(TEST) tests/pages; }

spark: ## Run the tests of the data on Spark, with a real Prometheus
	@$(TIMED) $(TEST) tests/spark

cluster: ## Run the tests against a real control plane, with real Spark executors where they matter
	@$(TIMED) $(TEST) $(BY_FILE) tests/e2e tests/faults tests/cluster tests/testbed

soak: setup ## Run what takes long, is random or needs a quiet machine, and print a table (hours); one part: make soak PART=e2e
	@$(RUN) -m tests.soak $(PART)

bench: setup ## Run all benchmarks, or one: make bench BENCH=planner
	@$(RUN) -m benchmarks $(BENCH)

generate: ## Rewrite generated files (CRDs and their copies, manifests)
	@.venv/bin/ballast crds
	@$(RUN) -m tests.charts
	@$(RUN) -m tests.metrics_page

format: ## Format and mend what can be mended
	@.venv/bin/ruff format operator tests benchmarks examples scripts
	@.venv/bin/ruff check --fix operator tests benchmarks examples scripts

comparison: ## Simulate every combination of strategies, and write docs/comparison.md
	@$(RUN) -m benchmarks comparison

dependencies: ## Look for known vulnerabilities and licenses to avoid in what is installed with Ballast (asks the package index)
	@scripts/dependencies.sh

release: ## Make everything that a release consists of in dist/VERSION, and publish nothing: make release VERSION=0.1.0
	@PATH="$$(dirname "$$(scripts/setup.sh --print-uv)"):$$PATH" $(RUN) scripts/release.py $(VERSION) $(RELEASE_OPTIONS)

site: ## Build the documentation as a site in build/site
	@PATH="$$(dirname "$$(scripts/setup.sh --print-uv)"):$$PATH" $(RUN) scripts/site.py

image: ## Build the container image without a container engine, and try it
	@scripts/image.sh

clean: ## Stop every testbed of this machine and delete what was built here
	@$(RUN) -m tests.testbed down --all
	@rm -rf build dist
