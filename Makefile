# Every target sets up what it needs first; only python3 (>= 3.11), pip and make are assumed.
PY := .venv/bin/python
STAMP := .venv/.gradeq-setup
PYTEST_WORKERS ?= auto

.PHONY: help setup demo docs test golden golden-record test-faults test-lowest fuzz check format bench bench-peers bench-large bench-quality bench-service bench-spark clean

help:
	@echo "make demo         set up, then run the demo into demo-out/"
	@echo "make docs         the documentation as a site, in site/index.html"
	@echo "make test         set up, then run all tests (PYTEST_ARGS=... to narrow)"
	@echo "make golden       compare what is served, printed, answered and saved with what was recorded (part of make test)"
	@echo "make golden-record CASES='debias/option logit*'   record cases anew that changed on purpose; '*' for all"
	@echo "make test-faults  runs killed at a write or short of room: files old or whole, no row lost or learned twice;"
	@echo "                  and a server killed under load: nothing acknowledged is lost or doubled"
	@echo "make test-lowest  a sample of the tests with the lowest versions that are allowed, from the source distribution"
	@echo "make fuzz         an adversary against everything that is printed (FUZZ_ARGS='--runs 10000 --seed 7'),"
	@echo "                  and thousands of generated calls against a running service"
	@echo "make check        ruff, ruff format, mypy --strict, direction of imports"
	@echo "make format       let ruff sort imports and format"
	@echo "make bench        the benchmark table; make bench-large adds the long ones"
	@echo "make bench-peers  the same work by river, MAPIE, evalica, torch and others, in an environment of their own, .peers"
	@echo "make bench-quality   bias and loss of the defaults on late streams, beside rolling means (needs GRADEQ_DATA)"
	@echo "make bench-service   the service beside a bare endpoint and raw transactions, over loopback"
	@echo "make bench-spark     tables on Spark beside Spark itself and the library, 10,000,000 rows of 1,000,000 keys"
	@echo "make clean        remove the environment and everything generated"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt scripts/bootstrap
	@scripts/bootstrap

demo: setup
	.venv/bin/gradeq demo -o demo-out

docs: setup
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet
	@echo "open site/index.html, or run $(PY) -m mkdocs serve"

test: setup
	$(PY) -m pytest -n $(PYTEST_WORKERS) --dist loadfile $(PYTEST_ARGS)

golden: setup
	$(PY) -m pytest -q -n $(PYTEST_WORKERS) --dist loadfile tests/golden

golden-record: setup
	@test -n "$(CASES)" || { echo "make golden-record CASES='pattern': name the cases; '*' is all of them"; exit 2; }
	cd tests && ../$(PY) -m golden record '$(CASES)' $(if $(STATES),--states)

test-faults: setup
	cd tests && ../$(PY) -m faults $(FAULTS_ARGS)
	cd tests && ../$(PY) -m service.kills $(KILLS_ARGS)
	cd tests && ../$(PY) -m service.long_faults $(STORE_FAULTS_ARGS)
	GRADEQ_STATEFUL=300 $(PY) -m pytest -q -n 0 tests/service/test_stateful.py

test-lowest: setup
	scripts/test-lowest || [ $$? = 77 ]  # 77: skipped, without PyPI

fuzz: setup
	cd tests && ../$(PY) -m fuzz $(FUZZ_ARGS)
	GRADEQ_FUZZ=400 $(PY) -m pytest -q -n 0 tests/service/test_api_fuzz.py

check: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy --strict src
	$(PY) -m pytest -q -n 0 tests/test_imports.py

format: setup
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: setup
	$(PY) -m benchmarks

bench-peers: setup
	$(PY) -m benchmarks.peers.install
	.peers/bin/python -m benchmarks.peers $(PEERS_ARGS)

bench-quality: setup
	$(PY) -m benchmarks.quality

bench-service: setup
	$(PY) -m benchmarks.service

bench-spark: setup
	$(PY) -m benchmarks.spark $(SPARK_ARGS)

bench-large: setup
	$(PY) -m benchmarks --large

clean:
	rm -rf .venv .peers .lowest .bootstrap demo-out bench-out dist build site
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
