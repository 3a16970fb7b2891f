# Every target creates .venv when it is not there and reuses it when it is.
PYTHON ?= python3
BIN = .venv/bin

.PHONY: eval test lint docs dist bench calibrate faults browser stress e2e clean

eval: .venv/ready            ## run the main job on the simulated agent
	$(BIN)/pytest --skilleval-lane=execution -n 8 --trials 5

test: .venv/ready            ## run the tests
	$(BIN)/pytest tests -n 2 -p no:cacheprovider

lint: .venv/ready            ## style, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/docs             ## build the documentation, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -E -b html docs docs/_build/html

dist: .venv/ready            ## build the wheel, check its size and what is in it
	rm -rf dist build
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python docs/wheel.py dist

bench: .venv/ready           ## ratios within one run: cost of a trial, of the plugin, of collection
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/schedule.py

calibrate: .venv/ready       ## measured error rates and power of the verdicts (minutes)
	$(BIN)/python benchmarks/calibrate.py

faults: .venv/ready          ## the fault scoreboard, in full (an hour)
	$(BIN)/python -m benchmarks.faults --full

browser: .venv/ready         ## report.html in a headless Chromium (Debian: chromium, chromium-driver)
	$(BIN)/python -m pip install --quiet --group browser
	npm install --silent --prefix .cache/browser axe-core
	$(BIN)/pytest tests -m browser -p no:cacheprovider

stress: .venv/ready          ## all lanes on eight workers, 20 times: what trials leave never mixes (minutes)
	SKILLEVAL_STRESS=20 $(BIN)/pytest tests/test_stress.py -p no:cacheprovider

e2e: .venv/ready             ## the real agent CLIs against a loopback model (npm, minutes)
	SKILLEVAL_E2E=1 $(BIN)/pytest tests/e2e -p no:cacheprovider

# pip learned dependency groups in 25.1; older ones are upgraded inside the environment.
.venv/ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

.venv/docs: .venv/ready
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

clean:
	rm -rf .venv .skilleval build dist docs/_build
