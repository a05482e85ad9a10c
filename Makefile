# `make` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help setup test lint audit page format live soak nightly coverage mutants bench demo docs up down clean

PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

setup:  ## bring what is missing: .venv, Java, JDBC driver, PostgreSQL 15 and a browser for the tests
	@.ci/setup.sh --tests

lint: setup  ## ruff, its formatter, mypy and bandit
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -m bandit -q -c pyproject.toml -r airflow_provider_pgtrickle spark_apps

audit:  ## known vulnerabilities of what requirements.lock pins; needs pip-audit and the network
	pip-audit --no-deps --disable-pip -r requirements.lock

test: lint  ## set-up, lint and all tests but the soaks
	$(PYTEST) -m "not slow" -n logical --maxprocesses 4

live: setup  ## all tests under a live Airflow; `make test` has a core of them
	$(PYTEST) -m live

soak: setup  ## the long randomized tests
	$(PYTEST) -m slow --timeout=0

nightly: setup  ## all that `make test` leaves out, within NIGHTLY_HOURS; written into docs/nightly.md
	@.ci/nightly.sh $(ARGS)

coverage: setup  ## which lines and branches the tests without Spark and Airflow never take
	$(PYTHON) -m coverage run -m pytest tests/unit tests/oracle
	$(PYTHON) -m coverage report

mutants: setup  ## which mistakes in the engine no test notices, within MUTANTS_MINUTES; ARGS="..." narrows
	@.ci/mutants.sh $(ARGS)

page:  ## build the page in Airflow from web/ui, with Node.js 20 or newer; what it writes, web/page.js, is committed
	cd airflow_provider_pgtrickle/web/ui && npm ci --no-fund --no-audit && npm run build

format:  ## let ruff mend what it can
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

bench: setup  ## the benchmarks; ARGS="..." reaches them
	$(PYTHON) -m tests.benchmarks $(ARGS)

docs:  ## the documentation's site, in build/site, with its links checked
	@.ci/setup.sh --docs
	NO_MKDOCS_2_WARNING=1 .tools/docs/bin/mkdocs build --config-file .ci/mkdocs.yml

demo:  ## a shop's stream tables in PostgreSQL, Airflow and Spark
	@.ci/setup.sh
	@$(PYTHON) -m airflow_provider_pgtrickle.demo

up:  ## the demo live: Airflow's UI, with rows that keep changing
	@.ci/setup.sh
	@$(PYTHON) -m airflow_provider_pgtrickle.demo up

down:  ## stop what `make up` started
	@$(PYTHON) -m airflow_provider_pgtrickle.demo down

clean:  ## remove caches and built packages
	rm -rf build dist airflow_provider_pgtrickle/web/ui/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage mutants spark-warehouse metastore_db derby.log
