# Two commands bring the project to life: `make results` and `make test`. `make help` lists the rest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
NL ?= 2595
OUT ?= results/runs/nl$(NL)
ARGS ?=
BIN := .venv/bin
SIGNATORY := signatory==1.2.6.1.9.0
export JUPYTER_PREFER_ENV_PATH := 1
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup signatory test results tables bench tour desk wheels readme notebooks lab book constraints clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1|/' | awk -F'|' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: .venv/installed ## create .venv and install the pinned requirements, once

.venv/installed: settings.ini setup.py constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "==> $(PYTHON) is $$($(PYTHON) --version 2>&1): Python 3.11 or later is needed, name it with make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || { echo "==> creating .venv with $$($(PYTHON) --version)"; $(PYTHON) -m venv .venv; }
	@echo "==> installing the pinned requirements, about 3 minutes (log: .venv/install.log)"
	@{ $(BIN)/python -m pip install -c constraints.txt setuptools wheel ninja torch && $(BIN)/python -m pip install -c constraints.txt -e '.[dev]'; } \
		> .venv/install.log 2>&1 || { tail -n 20 .venv/install.log; echo "==> the installation failed; the lines above and .venv/install.log say why"; exit 1; }
	@touch $@

signatory: .venv/signatory ## build signatory against the installed torch, once; without it only the checks that need it are skipped

.venv/signatory: .venv/installed
	@$(BIN)/python -c "import torch, signatory" 2> /dev/null && exit 0; \
	echo "==> building signatory against torch, about 4 minutes (log: .venv/signatory.log)"; \
	$(BIN)/python -m pip install --no-build-isolation --no-deps $(SIGNATORY) > .venv/signatory.log 2>&1 && $(BIN)/python -c "import torch, signatory" 2>> .venv/signatory.log \
		|| echo "==> signatory could not be built (see .venv/signatory.log): going on without it, the checks that need it are skipped"
	@touch $@

test: setup signatory ## run every notebook's tests and the checks of the house; closes with 'N passed, M failed'
	@$(BIN)/python .ci/check.py

results: setup ## run the results notebook for one label budget: make results NL=2595 ARGS="-p quick True"
	@$(BIN)/python .ci/results.py "$(OUT)" $(NL) $(ARGS)

tables: setup ## write all tables and figures from the committed rows: results/tables, and the outputs of nbs/studies/04_tables.ipynb
	@$(BIN)/papermill --cwd nbs/studies nbs/studies/04_tables.ipynb nbs/studies/04_tables.ipynb && $(BIN)/nbdev_clean --fname nbs/studies/04_tables.ipynb
	@echo "==> results/tables"

bench: setup ## time the library next to its rivals and add the rows to results/benchmarks.csv: make bench ARGS="-p quick True"
	@mkdir -p results/runs
	@for n in 09_benchmarks 10_benchmarks_use 13_benchmarks_growth; do $(BIN)/papermill nbs/studies/$$n.ipynb results/runs/$$n.ipynb $(ARGS) && echo "==> results/runs/$$n.ipynb" || exit 1; done

tour: setup ## open the ten-minute tour in JupyterLab: from a CSV file to alerts, reasons and the desk
	@$(BIN)/jupyter lab nbs/tour.ipynb

desk: setup ## open the page where alerts are decided, on simulated payments: make desk ARGS="--port 5007"
	@mkdir -p data && $(BIN)/python -m logsig_fraud.detector.desk --simulate data/desk $(ARGS)

# What Kaggle's image may lack; its own torch, numpy, pandas and scikit-learn stay.
WHEELS := pysiglib pandera typeguard typing_inspect mypy_extensions "arviz<1" xarray-einstats h5netcdf safetensors kagglehub kagglesdk platformdirs "fastcore<2" filelock lightgbm papermill crepes
KAGGLE_PYTHON ?= 3.12

wheels: setup ## the library and what it needs as wheels in kaggle/wheels, for a Kaggle kernel without internet
	@mkdir -p kaggle/wheels && cp nbs/10_results.ipynb kaggle/wheels/
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir kaggle/wheels . "kauri>=2.3" # kauri has no wheel of its own
	@$(BIN)/python -m pip download --quiet --no-deps --only-binary=:all: --python-version $(KAGGLE_PYTHON) --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 --dest kaggle/wheels $(WHEELS)
	@echo "==> kaggle/wheels: upload the folder as a dataset"

readme: setup ## write README.md from nbs/index.ipynb
	@$(BIN)/python .ci/check.py --write-readme

notebooks: setup ## after editing notebooks: export the library, clean the notebooks, write the README
	@$(BIN)/nbdev_export && $(BIN)/nbdev_clean && $(MAKE) --no-print-directory readme

lab: setup ## open the notebooks in JupyterLab
	@$(BIN)/jupyter lab --notebook-dir=nbs

book: .venv-book/installed ## build the book from the committed notebooks, in an environment of its own: book/_build
	@.venv-book/bin/python book/build.py

.venv-book/installed: book/requirements.txt
	@test -x .venv-book/bin/python || $(PYTHON) -m venv .venv-book
	@echo "==> installing Jupyter Book, about a minute (log: .venv-book/install.log)"
	@.venv-book/bin/python -m pip install -r book/requirements.txt > .venv-book/install.log 2>&1 || { tail -n 20 .venv-book/install.log; exit 1; }
	@touch $@

constraints: setup ## write constraints.txt anew from what is installed
	@$(BIN)/python -m pip freeze --all --exclude-editable --exclude signatory --exclude pip | sed 's/+cpu//' > constraints.txt

clean: ## remove .venv, the book and the executed notebooks
	rm -rf .venv .venv-book book/_build results/runs
