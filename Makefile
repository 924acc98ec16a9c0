# Everything runs from .venv, which the first target makes and renews when pyproject.toml changes.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SQL := schemas tracelens/queries tracelens/loading tracelens/rules

# The first Python that will do.  Another one: make PYTHON=/path/to/python3.12 test
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2> /dev/null && echo $$python && break; done)
# Further arguments: make test ARGS="-k dmon", make bench ARGS="--write docs/performance.md"
ARGS ?=
# Size of the log that make bench reads.
SIZE_MB ?= 200

.PHONY: demo test check fix golden bench docs clean
.DELETE_ON_ERROR:

demo: $(READY)  ## read the bundled incident and show where its time went
	$(BIN)/tracelens demo

test: $(READY)  ## run the tests
	$(BIN)/pytest -n auto --dist worksteal $(ARGS)

check: $(READY)  ## formatting, lint, types, import rules, generated pages
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/sqlfluff lint --nocolor --processes 0 $(SQL)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python docs/write_docs.py --check

fix: $(READY)  ## format, and mend what can be mended
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/sqlfluff fix --nocolor $(SQL)

golden: $(READY)  ## record the golden files again; read the diff
	TRACELENS_GOLDEN=write $(BIN)/pytest tests/formats/test_golden.py

bench: $(READY)  ## measure everything against its target: docs/performance.md (ARGS="--write docs/performance.md")
	$(BIN)/python bench/run.py --size-mb $(SIZE_MB) $(ARGS)

docs: $(READY)  ## write the generated pages again
	$(BIN)/python docs/write_docs.py

clean:  ## remove what was made here
	rm -rf $(VENV) build dist bench/out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@echo "setting up $(VENV) ..."
	@rm -rf $(VENV)
	@if command -v uv > /dev/null; then \
		uv venv --quiet $(if $(PYTHON),--python "$(PYTHON)") $(VENV) && \
		uv pip install --quiet --python $(BIN)/python --editable . --group dev; \
	elif test -n "$(PYTHON)"; then \
		"$(PYTHON)" -m venv $(VENV) && \
		$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1" && \
		$(BIN)/python -m pip install --quiet --editable . --group dev; \
	else \
		echo "tracelens needs Python 3.11 to 3.14: make PYTHON=/path/to/python" >&2; exit 1; \
	fi
	@touch $(READY)
