PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Bytecode is kept whatever the environment says: hundreds of modules would be compiled in every process otherwise.
export PYTHONDONTWRITEBYTECODE :=
EXTRAS := pandas,duckdb,spark,sql,files,linkage,geo,models,vines,dp,federated,deep,app,docs,lint,dev

.PHONY: demo test tests test-all axe browser kernels test-processors fingerprints index fuzz kill lint bench docs install clean

demo: $(VENV)/core
	@mkdir -p demo
	@$(BIN)/discreet assess src/discreet/datasets/adult.csv.gz \
	  --keys age,sex,race,marital-status,native-country --sensitive income \
	  --scenario "neighbor=age,sex,marital-status" --policy scientific-use-file \
	  --html demo/report.html || [ $$? -eq 3 ]
	@echo
	@echo "Open demo/report.html in a browser."
	@echo "The whole job in a browser, without writing code: $(BIN)/pip install -c constraints.txt -e '.[app]' && $(BIN)/discreet app"

# Loops are compiled while the extras come in, and types are read while tests wait for Java or for one another.
test:
	$(MAKE) --jobs 2 install kernels
	$(MAKE) --jobs 2 lint tests

tests:
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --durations=25

test-all: axe browser
	$(MAKE) --jobs 2 install kernels
	$(MAKE) lint
	DISCREET_EXAMPLES=searching $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "slow or not slow"
	$(MAKE) test-processors

# Compiled once, before the test processes share them.
kernels: $(VENV)/lint
	$(BIN)/python tests/warm_kernels.py

test-processors: install
	$(BIN)/python tests/on_other_processors.py

# Does everything answer as it did at BASE? Every answer that a test gets is held against the one it got there.
BASE ?= HEAD~1
WHAT ?= tests src
fingerprints: install
	$(BIN)/python tests/repeatable/comparing.py $(BASE) $(WHAT)

# Lists, completion and help read the index; whoever adds a method writes it anew.
index: install
	$(BIN)/python -c 'from discreet.workflow.catalog import build_index; build_index()'

# New cases every time; the seed is printed, and CASES and SEED bring the same ones again.
CASES ?= 20000
SEED ?= $(shell $(PYTHON) -c 'import secrets; print(secrets.randbelow(10**9))')
fuzz: install
	DISCREET_FUZZ_CASES=$(CASES) DISCREET_FUZZ_SEED=$(SEED) $(BIN)/python -m pytest -q -n 2 tests/fuzz

KILLS ?= 200
kill: install
	DISCREET_KILLS=$(KILLS) DISCREET_FUZZ_SEED=$(SEED) $(BIN)/python -m pytest -q -s -m slow tests/fuzz/test_kills.py

# What the browser tests judge pages by, where npm is there; they go on without it.
axe: $(VENV)/axe/package/axe.min.js
$(VENV)/axe/package/axe.min.js:
	@mkdir -p $(VENV)/axe
	-@cd $(VENV)/axe && npm pack --silent axe-core@4.14.0 >/dev/null 2>&1 && tar xzf axe-core-4.14.0.tgz

# The slow tests also try the page in a real browser. Where one may be installed it is; elsewhere they say so and skip.
browser:
	-@command -v chromedriver >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
	  && apt-get install -y -qq --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1

# Looking for what is no longer needed takes a fifth of mypy's time, and finds next to nothing.
MYPY := import gc; gc.disable(); gc.enable = gc.set_threshold = lambda *_: None; from mypy.main import main; main()

lint: $(VENV)/lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -c '$(MYPY)'

bench: install
	@for file in bench/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

docs: install
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html in a browser."

install: $(VENV)/installed

# Only what is imported is compiled to bytecode, when it first is: most of what the extras bring never is.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt

# uv takes a third of pip's time. It looks where pip was told to look; what it cannot bring, pip brings.
TOLD = $$($(BIN)/python -m pip config get global.$(1) 2>/dev/null)
UV := UV_DEFAULT_INDEX="$${PIP_INDEX_URL:-$(call TOLD,index-url)}" UV_FIND_LINKS="$${PIP_FIND_LINKS:-$(call TOLD,find-links)}" \
  $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discreet needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	-$(PIP) uv

# What the demo needs is here within half a minute or so; the extras, for the tests, take longer.
$(VENV)/core: pyproject.toml constraints.txt | $(BIN)/python
	$(UV) --editable . || $(PIP) --editable .
	@touch $@

$(VENV)/lint: pyproject.toml constraints.txt | $(BIN)/python
	$(UV) --editable ".[lint]" || $(PIP) --editable ".[lint]"
	@touch $(VENV)/core $@

# Spark comes as a source; pip keeps what it builds of it for the next time.
$(VENV)/installed: $(VENV)/lint
	$(PIP) --no-deps pyspark
	$(UV) --editable ".[$(EXTRAS)]" || $(PIP) --editable ".[$(EXTRAS)]"
	@touch $@

clean:
	rm -rf $(VENV) demo docs/_build .pytest_cache .mypy_cache .ruff_cache
