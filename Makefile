# Every target creates .venv when it is not there and reuses it when it is.
PYTHON ?= python3
BIN = .venv/bin

.PHONY: eval test lint docs dist oldest newest neighbours bench calibrate faults browser stress e2e clean

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

dist: .venv-release/ready    ## build sdist and wheel, check their metadata, the wheel's size and what is in it
	rm -rf dist build
	.venv-release/bin/python -m build --outdir dist .
	.venv-release/bin/twine check --strict dist/*
	.venv-release/bin/check-wheel-contents dist/*.whl
	.venv-release/bin/python docs/wheel.py dist dist

oldest: dist                 ## the wheel in a clean environment with the oldest dependencies it allows: a small run
	rm -rf .venv-oldest
	$(PYTHON) -m venv .venv-oldest
	$(PYTHON) docs/wheel.py oldest > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --constraint .venv-oldest/constraints.txt dist/*.whl
	$(PYTHON) docs/wheel.py try .venv-oldest

newest: dist                 ## the same with the newest
	rm -rf .venv-newest
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet dist/*.whl
	$(PYTHON) docs/wheel.py try .venv-newest

neighbours: .venv-neighbours/ready  ## other tools beside the plugin, each in a real session (minutes)
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 .venv-neighbours/bin/python -m pytest -p xdist -p skilleval -n 2 \
		tests/test_neighbours.py -p no:cacheprovider

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

.venv-release/ready: pyproject.toml
	test -x .venv-release/bin/python || $(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-release/bin/python -m pip install --quiet --group release
	touch $@

.venv-neighbours/ready: pyproject.toml
	test -x .venv-neighbours/bin/python || $(PYTHON) -m venv .venv-neighbours
	.venv-neighbours/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-neighbours/bin/python -m pip install --quiet --editable . --group neighbours
	touch $@

clean:
	rm -rf .venv .venv-* .skilleval build dist docs/_build
