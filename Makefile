# Every target is a few plain commands; README.md writes them out for Windows and for those without make.

PYTHON ?= python3
# Where torch comes from; empty means pip's own settings. Linux without a GPU: see README.md.
TORCH_INDEX_URL ?=
# More arguments for JupyterLab, such as --no-browser.
LAB_ARGS ?=

BIN := .venv/bin
CHAPTER = $(firstword $(sort $(wildcard notebooks/zh/*.ipynb)))

.PHONY: help setup lab test course build check bench train

help:
	@echo "make lab      open the course in JupyterLab"
	@echo "make test     run every check and every test"
	@echo "make setup    only install: .venv, from pyproject.toml and constraints.txt (lab and test do it, too)"
	@echo "make course   execute all chapters; executed notebooks and an HTML edition go to build/"
	@echo "make build    weave the modules of handbook/ from the chapters"
	@echo "make check    woven modules, ruff, types"
	@echo "make bench    the benchmarks"
	@echo "make train    train the embedded model anew"

setup: .venv/installed

lab: .venv/installed
	$(BIN)/jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/$(CHAPTER) $(LAB_ARGS)

test: check .venv/installed-for-tests
	$(BIN)/python -m pytest

course: .venv/installed
	$(BIN)/python -m handbook.lab.course

build: .venv/installed
	$(BIN)/python -m handbook.lab.weave

check: .venv/installed
	$(BIN)/python -m handbook.lab.weave --check
	$(BIN)/ruff check
	$(BIN)/mypy

bench: .venv/installed-for-tests
	$(BIN)/python -m tests.bench

train: .venv/installed
	$(BIN)/python -m handbook.lab.train

# The files below mark what is installed already, so that a second make installs nothing.

.venv/created:
	@$(PYTHON) -c "import sys; sys.version_info >= (3, 11) or sys.exit('$(PYTHON) is Python ' + sys.version.split()[0] + ', and the course needs 3.11 or newer: install one, then for example: make setup PYTHON=python3.12')"
	$(PYTHON) -m venv .venv
	@touch $@

# torch comes alone and first: its index may differ, and an index of torch need not have its dependencies in our versions.
.venv/installed: .venv/created pyproject.toml constraints.txt
	@echo "Installing into .venv, 2 to 4 minutes after the downloads. The first time these are: torch, 0.2 GB (on Linux 3 GB,"
	@echo "with CUDA, unless TORCH_INDEX_URL names CPU builds: see README.md), and 140 MB of other packages."
	$(BIN)/python -m pip install -c constraints.txt --no-deps $(if $(TORCH_INDEX_URL),--index-url $(TORCH_INDEX_URL)) torch
	$(BIN)/python -m pip install -c constraints.txt -e '.[test]'
	@touch $@

# dashscope carries Qwen's vocabulary; the tests read that one file, so its dependencies stay away.
.venv/installed-for-tests: .venv/installed
	$(BIN)/python -m pip install -c constraints.txt --no-deps dashscope
	@touch $@
