# Every target sets up what it needs: `make demo` on a bare machine needs a JDK, Python and
# either sbt or Maven, nothing else. Stamps tell what is up to date.

PYTHON ?= python3
ARGS ?=
export TEST_JOBS ?= $(shell $(PYTHON) build-tools/test_jobs.py)

# The lines of Spark, the default one first, the newest last. SPARK=4.2 takes another one, for any target.
# Of some PySpark has the classes, and nobody the tests: none of those is the newest that all is tested on.
include project/spark-lines.properties
LINES := $(lines)
FROM_PYSPARK := $(foreach line,$(LINES),$(if $($(line).fromPySpark),$(line)))
NEWEST := $(lastword $(filter-out $(FROM_PYSPARK),$(LINES)))
DEFAULT := $(firstword $(LINES))
# The demo is of the newest line, on a machine that is new enough for it.
ifeq ($(MAKECMDGOALS),demo)
DEFAULT := $(shell { test "$$(build-tools/java-release)" -ge 17 && \
  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))'; } 2> /dev/null && \
  echo $(NEWEST) || echo $(DEFAULT))
endif
SPARK ?= $(DEFAULT)
IS_NEWEST := $(filter $(NEWEST),$(SPARK))
PYSPARK := $($(SPARK).spark)
ifeq ($(PYSPARK),)
$(error There is no line $(SPARK) of Spark here; the lines are $(LINES))
endif
OLDEST_PYTHON := $($(SPARK).python)
ifneq ($(and $(filter test-tools,$(MAKECMDGOALS)),$(filter-out $(firstword $(LINES)),$(SPARK))),)
$(error The tools are tested on Spark $(firstword $(LINES)) only)
endif

# Of Spark 4 with what its Connect client needs; that of 3.5 has an environment of its own.
REQUIREMENTS := python/requirements-dev.txt \
  $(if $(filter 4.%,$(SPARK)),python/requirements-connect.txt)

VENV := .venv$(if $(filter-out $(firstword $(LINES)),$(SPARK)),-$(SPARK))
PY := $(VENV)/bin/python
SBT := build-tools/sbt -Dspark.line=$(SPARK)
TEST_REPORT := target/spark-$(SPARK)/scalatest.txt
JUNIT := --junitxml=../target/spark-$(SPARK)/pytest.xml
CLASS_ARCHIVE := target/spark-$(SPARK)/classes.jsa
# VERSION=x.y.z is what `make release` is given; the version of what is built is always this.
NEW_VERSION := $(VERSION)
override VERSION := $(shell cat version.txt)

BUILD_FILES := version.txt LICENSE NOTICE build.sbt $(wildcard project/*.sbt project/*.scala project/*.properties)
SCALA_FILES := $(shell find scala/src/main -type f 2>/dev/null)
PYTHON_FILES := $(shell find python/pyspark_skewext -type f \( -name '*.py' -o -name py.typed \) 2>/dev/null)

JAR_STAMP := python/pyspark_skewext/jars/.stamp-$(SPARK)
VENV_STAMP := $(VENV)/.stamp
# For a server of Spark Connect of this line; from Spark 4 on there is a PySpark without a JVM.
CLIENT_VENV := .venv-client-$(SPARK)
CLIENT := pyspark$(if $(filter 4.%,$(SPARK)),-client)==$(PYSPARK)
TOOLS_VENV := .venv-tools
SITE_VENV := .venv-site
RELEASE_VENV := .venv-release
WHEEL := python/dist/pyspark_skewext-$(VERSION)-py3-none-any.whl
WHEEL_SOURCES := target/wheel

# Spark's workers must be the Python of the driver, and Spark the one of the virtual environment.
export PYSPARK_PYTHON := $(CURDIR)/$(PY)
unexport SPARK_HOME PYSPARK_DRIVER_PYTHON
# Python compiles what it imports by itself; most of what is installed it never does. With both an
# environment takes 36 s of processor time instead of 59.
PIP_INSTALL := -m pip install -q --disable-pip-version-check --no-compile
PIP_BUILD := DIST_EXTRA_CONFIG=$(CURDIR)/build-tools/pip-build.cfg
# PySpark carries itself twice. A worker has the zip on its path, and Python reads the list of its files once
# more in each task: a third of the processor time of tests that make rows in Python.
DROP_ZIPS = rm -f $(@D)/lib/python*/site-packages/pyspark/python/lib/*.zip
# In the POSIX locale the JVM has no names for files that are not ASCII.
export LC_ALL := C.UTF-8
# The time of all files in what is built, so that two builds have the same bytes. sbt reads it, too.
export SOURCE_DATE_EPOCH := 1262304000

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The order of prerequisites saves a start of sbt: after the Scala tests the jar is there.
.NOTPARALLEL:

.PHONY: help demo test test-all test-line test-line-scala test-line-python test-lines \
  test-ci test-ci-scala test-ci-python test-scala test-python test-spark test-random test-merge test-tools \
  durations features fuzz fuzz-scala cluster-test memory-test driver-test matrix bench \
  bench-tpch bench-tpcds bench-tasks fmt check check-scala check-python compile-newest \
  compile environments environment jar jars wheel docs site scaladoc release \
  wheel-of-jars notebooks clean distclean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(JAR_STAMP) $(VENV_STAMP) ## Join six real tables, beside stock Spark and DuckDB
	$(PY) -m demo $(ARGS)

test: export SKEWEXT_TEST_QUICK := 1
test: test-scala test-python ## The quick tests: Scala suites, pytest, the built wheel; CI runs slow ones, too

test-all: export SKEWEXT_TEST_ALL := 1
test-all: $(CLIENT_VENV)/.stamp test ## The same and more: Spark's own suites, all random queries, all combinations of settings

# What depends on the line of Spark: types, plans, links of nodes, shims, and what only newer lines have.
# The newest line has more, where adaptive execution, sessions and writes differ from those of 3.5.
LINE_SUITES := *SkewExtensionsSuite *KeyTypesSuite *LogicalLinksSuite *RepeatableOperatorsSuite \
  *StoragePartitionsSuite *MergeSuite \
  $(if $(IS_NEWEST),*Explain*Suite *CollatedKeysSuite *NewTypesSuite *StableRowsSuite *WriteCheckSuite \
  *ResultStageSuite *SkewedBroadcastCostSuite *JoinExplainProviderSuite *SplitSparkJoinSuite \
  *MultiFullJoinSuite *BadInputSuite *BulkExchangesSuite *OtherShuffleManagerSuite *TableFunctionsSuite \
  *RolledLogSuite *BarrierStagesSuite *UnionOfJoinsSuite *ReplanningSuite *OtherSessionsSuite \
  *StoppedSessionSuite *ConcurrentAppendsSuite *AsOfJoinSuite *AsOfToleranceSuite *LatestRowsSuite \
  *SparkAsOfJoinSuite *DoctorSuite *LinkageSuite *ScalaApiSuite *ScalaPageSuite *OutputSkewSuite \
  *TechniqueHintsSuite *OrJoinSuite *CutRangeJoinsSuite *KeyedPartitionsSuite *FailingKeysSuite \
  *CollatedSortColumnsSuite *RowNumbersSuite)
# Where no Scala suites run, Python tests run more of the functions.
LINE_TESTS := tests/test_joins.py tests/test_asof.py tests/test_plans.py tests/test_other_sessions.py \
  tests/test_sessions.py::test_a_jar_of_another_line tests/smoke_wheel.py \
  $(if $(filter $(NEWEST) $(lastword $(LINES)),$(SPARK)),tests/test_random_sql.py::test_random_queries) \
  $(if $(filter $(lastword $(LINES)),$(SPARK)),tests/test_docs.py tests/test_examples.py::test_the_check_for_databricks) \
  $(if $(IS_NEWEST),tests/test_connect.py)

test-line test-line-scala test-line-python: export SKEWEXT_TEST_LINE := 1
test-line: test-line-scala test-line-python ## A part of the tests, for another line of Spark: SPARK=4.2

test-line-scala:
	$(MAKE) --no-print-directory test-scala ONLY='$(LINE_SUITES)'

test-line-python: $(if $(IS_NEWEST),$(CLIENT_VENV)/.stamp)
	$(MAKE) --no-print-directory test-python \
	  ARGS='-n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder --durations=10 $(JUNIT) $(LINE_TESTS)'

test-lines: ## The same for each line but the default one
	$(call for_each_line,test-line)

# Runs the target for each line but the default one, also after one that failed.
for_each_line = status=0; \
	for line in $(filter-out $(firstword $(LINES)),$(LINES)); do \
	  $(MAKE) --no-print-directory $(1) SPARK=$$line || status=1; \
	done; \
	exit $$status

# Two lanes, each with half of the processors. One has all Scala suites, as two sbt must never work at a time.
# The other one has the Python tests, line by line. The lane that ends first takes the next line. Environments,
# jars and the wheel are built before, so that no lane replaces a file that the other one reads.
LANES := $(if $(filter 1,$(TEST_JOBS)),1,2)
IN_LANE = --no-print-directory -k BUILT=1 TEST_JOBS=$$(($(TEST_JOBS) / $(LANES)))
BY_SIZE := $(firstword $(LINES)) $(NEWEST) $(FROM_PYSPARK)
BY_SIZE += $(filter-out $(BY_SIZE),$(LINES))
test-ci: ## All of the default line, a part of each other one: what CI runs
	status=0; \
	$(MAKE) --no-print-directory -k environments jars wheel-of-jars $(CLASS_ARCHIVE) || status=1; \
	$(PYTHON) build-tools/lanes.py $(LANES) "$(MAKE) $(IN_LANE) test-ci-scala" \
	  $(foreach line,$(BY_SIZE),"$(MAKE) $(IN_LANE) test-ci-python SPARK=$(line)") || status=1; \
	exit $$status

# Of the Scala suites those of the default line and of the newest one. Others run at night.
test-ci-scala:
	status=0; \
	SKEWEXT_TEST_SLOW=1 SKEWEXT_RANDOM_MERGES=40 $(MAKE) --no-print-directory test-scala || status=1; \
	$(MAKE) --no-print-directory test-line-scala SPARK=$(NEWEST) || status=1; \
	exit $$status

test-ci-python:
	$(if $(filter $(firstword $(LINES)),$(SPARK)),SKEWEXT_TEST_SLOW=1) $(MAKE) --no-print-directory \
	  $(if $(filter $(firstword $(LINES)),$(SPARK)),test-python,test-line-python)

ifeq ($(filter $(FROM_PYSPARK),$(SPARK)),)
# The reports of an earlier run must not be counted.
test-scala: ## The Scala suites; ONLY='*ZipSuite' runs some
	rm -rf $(TEST_REPORT) $(dir $(TEST_REPORT))test-reports
	$(SBT) $(if $(BUILT),,bundleJar testJars) "$(if $(ONLY),testOnly $(ONLY),test)"; status=$$?; \
	  $(PYTHON) build-tools/count_tests.py $(TEST_REPORT) && exit $$status
else
test-scala: $(JAR_STAMP)
	@echo "No Scala suites of Spark $(SPARK): PySpark does not have Spark's tests, which they are made of."
endif

# Only here is the smoke test of the wheel collected, as only here the wheel is sure to be new.
# (Named beside its folder it would make pytest 8 forget the rest of the folder.)
# An archive of classes saves more than it takes where there are many sessions.
test-python: $(WHEEL) $(VENV_STAMP) $(if $(ARGS),,$(CLASS_ARCHIVE)) ## pytest and the built wheel; ARGS='-k name' runs some, in one process
	cd python && ../$(PY) -m pytest -o 'python_files=test_*.py smoke_*.py' \
	  $(if $(ARGS),$(ARGS),-n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder --durations=10 $(JUNIT))

durations: ## Store how long tests took in build-tools/test_seconds.tsv, after `make test-ci`
	$(PYTHON) build-tools/test_seconds.py $(LINES:%=target/spark-%)

features: ## Fill the table of tests by feature in docs/compatibility.md, after runs on the lines
	$(PYTHON) build-tools/feature_table.py $(LINES:%=target/spark-%)

# What takes too long for CI.
test-spark: export SKEWEXT_TEST_ALL := 1
test-spark: $(JAR_STAMP) $(VENV_STAMP) ## Spark's own suites and all of TPC-DS
	rm -f $(TEST_REPORT)
	$(SBT) "testOnly io.github.skewext.sparktests.*"; status=$$?; \
	  $(PYTHON) build-tools/count_tests.py $(TEST_REPORT) && exit $$status
	cd python && SKEWEXT_TPCDS=all ../$(PY) -m pytest tests/test_tpcds.py

test-random: $(JAR_STAMP) $(VENV_STAMP) ## Random queries, three engines; ARGS='--seed 7 --count 5000'
	cd python/tests && ../../$(PY) -m random_sql $(ARGS)

fuzz: $(JAR_STAMP) $(VENV_STAMP) ## The same for MINUTES=n, by a seed that is printed
	cd python/tests && ../../$(PY) -m random_sql --minutes $(or $(MINUTES),10) $(ARGS)

# Executors are killed and files deleted, in a cluster on this machine.
cluster-test: $(JAR_STAMP) $(VENV_STAMP) ## Queries while a cluster breaks; figures for docs/reliability.md
	$(PY) bench/faults.py --runs 100 $(ARGS)
	$(PY) bench/faults.py --runs 20 --speculation $(ARGS)
	$(PY) bench/faults.py --runs 20 --decommissioning $(ARGS)

memory-test: $(JAR_STAMP) $(VENV_STAMP) ## Joins in small heaps; figures for docs/reliability.md
	$(PY) bench/memory.py $(ARGS)

driver-test: $(JAR_STAMP) $(VENV_STAMP) ## Many tasks, files and queries; figures for docs/reliability.md
	for what in tasks files soak; do $(PY) bench/endurance.py $$what $(ARGS) || exit; done

fuzz-scala: ## Random joins, splits and MERGEs in Scala, by a new seed that is printed; SEED=n repeats one
	seed=$(or $(SEED),$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')); echo "SEED=$$seed"; \
	  SKEWEXT_RANDOM_SEED=$$seed $(SBT) "testOnly *Random*Suite"

# sparkMeasure is a jar, too. The page has code blocks that need the tools.
test-tools: export PYSPARK_SUBMIT_ARGS := --packages ch.cern.sparkmeasure:spark-measure_2.12:0.24 pyspark-shell
test-tools: export PYSPARK_PYTHON := $(CURDIR)/$(TOOLS_VENV)/bin/python
test-tools: $(JAR_STAMP) $(TOOLS_VENV)/.stamp ## Tools on top of Spark: the same rows with the extension and without
	cd python && SKEWEXT_TEST_TOOLS=1 $(PYSPARK_PYTHON) -m pytest tests/test_tools.py \
	  'tests/test_docs.py::test_examples_print_what_the_document_says[tools.md]'

test-merge: ## Random MERGEs into tables of Iceberg; MERGES=10000
	SKEWEXT_RANDOM_MERGES=$(or $(MERGES),1000) $(SBT) "testOnly *RandomMergeSuite"

matrix: $(JAR_STAMP) $(VENV_STAMP) ## A smoke test with every Python here; MATRIX=full: every release of PySpark, too
	$(PY) build-tools/matrix.py $(if $(filter full,$(MATRIX)),--full) $(ARGS)

bench: $(JAR_STAMP) $(VENV_STAMP) ## The benchmarks, or BENCH=case; ARGS='--help' lists them; bench-tpch, bench-tpcds, bench-tasks
	$(PY) bench/run.py $(ARGS) $(BENCH)

bench-tpch: $(JAR_STAMP) $(VENV_STAMP)
	$(PY) bench/tpch.py $(ARGS)

bench-tpcds: $(JAR_STAMP) $(VENV_STAMP)
	$(PY) bench/tpcds.py $(ARGS)

bench-tasks: $(JAR_STAMP) $(VENV_STAMP)
	$(PY) bench/tasks.py $(ARGS)

fmt: $(VENV_STAMP) ## Format all sources and repair what the linters can
	$(SBT) scalafixAll scalafmtAll scalafmtSbt
	$(PY) -m ruff check --fix-only
	$(PY) -m ruff format

check: check-python check-scala site ## Formatting, linters, types, generated docs up to date, links

check-python: $(VENV_STAMP)
	$(PY) -m ruff format --check
	$(PY) -m ruff check
	cd python && ../$(PY) -m mypy
	MYPYPATH=bench:python $(PY) -m mypy --config-file python/pyproject.toml bench/*.py bench/harness/*.py

# The jar costs nothing where all is compiled, and a start of sbt elsewhere.
check-scala:
	$(SBT) scalafmtCheckAll scalafmtSbtCheck scalafixCheck Test/compile bundleJar testJars \
	  "Test/runMain io.github.skewext.SettingsDoc --check docs/settings.md" \
	  "Test/runMain io.github.skewext.ReasonsDoc --check docs/explain.md"

# Both so that CI can do one while it does the other: this keeps a core busy, and that the network.
compile-newest: ## Compile the jar and tests of the newest line of Spark that Maven has
	$(MAKE) --no-print-directory compile SPARK=$(NEWEST)

compile:
	$(SBT) bundleJar testJars Test/compile

environments: ## The virtual environments of all lines of Spark, with what tests need
	for line in $(LINES); do $(MAKE) --no-print-directory environment SPARK=$$line || exit; done

environment: $(VENV_STAMP) $(if $(IS_NEWEST),$(CLIENT_VENV)/.stamp)

notebooks: $(JAR_STAMP) $(VENV_STAMP) ## Run the notebooks of examples/, made of the scripts there
	$(PY) build-tools/notebooks.py

docs: ## Write docs/settings.md, and the tables of docs/explain.md, from the code
	$(SBT) "Test/runMain io.github.skewext.SettingsDoc docs/settings.md" \
	  "Test/runMain io.github.skewext.ReasonsDoc docs/explain.md"

site: $(SITE_VENV)/.stamp ## The documentation as a site, in target/site; warnings, as of links, are errors
	$(SITE_VENV)/bin/python build-tools/site/build.py

# Not a part of `site`, which CI runs beside sbt. A release has the same pages in its -javadoc.jar.
scaladoc: ## The reference for Scala and Java, in target/site/scaladoc, after `make site`
	$(SBT) doc
	rm -rf target/site/scaladoc
	mkdir -p target/site
	cp -R target/spark-$(SPARK)/scala-*/api target/site/scaladoc

jar: $(JAR_STAMP) ## The jar, put into the Python package

jars: ## The jars of all lines of Spark
	for line in $(LINES); do $(MAKE) --no-print-directory jar SPARK=$$line || exit; done

wheel: jars $(WHEEL) ## The wheel, with the jars of all lines inside, in python/dist
	@ls $(WHEEL)

# The version and the changelog are changed by it, last of all; DRY_RUN=1 changes nothing.
RELEASED := $(if $(DRY_RUN),$(if $(ALL_LINES),$(LINES),$(SPARK)),$(LINES))
release: $(RELEASE_VENV)/.stamp $(VENV_STAMP) ## A release in target/release: VERSION=x.y.z, or DRY_RUN=1
	for line in $(filter $(FROM_PYSPARK),$(RELEASED)); do \
	  $(MAKE) --no-print-directory environment SPARK=$$line || exit; done
	$(RELEASE_VENV)/bin/python build-tools/release/release.py \
	  $(if $(DRY_RUN),--dry-run,$(NEW_VERSION)) $(if $(SKIP_TESTS),--skip-tests) --lines $(RELEASED)

# With the jars that are there.
wheel-of-jars:
	rm -f $(WHEEL)
	$(MAKE) --no-print-directory $(WHEEL)

clean: ## Remove what was built; the virtual environment and downloads stay
	rm -rf target project/target project/project python/pyspark_skewext/jars python/dist \
	  python/.mypy_cache python/.pytest_cache python/.hypothesis .ruff_cache \
	  skewext-demo
	find python bench build-tools -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## Remove these too
	rm -rf .venv .venv-* .cache

$(JAR_STAMP): $(SCALA_FILES) $(BUILD_FILES) $(if $(filter $(FROM_PYSPARK),$(SPARK)),$(VENV_STAMP))
	$(SBT) bundleJar testJars

# Of Spark's classes and not of ours, which come from a jar that a session adds.
$(CLASS_ARCHIVE): build-tools/class_archive.py $(VENV_STAMP) | $(JAR_STAMP)
	$(PY) $< $@

# The .pth file makes the package in the tree importable: no installed copy that could be stale.
$(VENV_STAMP): $(REQUIREMENTS) $(if $(filter-out $(firstword $(LINES)),$(SPARK)),project/spark-lines.properties)
	@$(PYTHON) -c 'import sys; sys.exit(not tuple(map(int, "$(OLDEST_PYTHON)".split("."))) <= sys.version_info < (3, 14))' || \
	  { echo "Spark $(SPARK) needs Python $(OLDEST_PYTHON) to 3.13; choose one with PYTHON=..." >&2; exit 1; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	sed 's/^pyspark==.*/pyspark==$(PYSPARK)/' $(REQUIREMENTS) > $(VENV)/requirements.txt
	$(PIP_BUILD) $(PY) $(PIP_INSTALL) --use-pep517 -r $(VENV)/requirements.txt
	$(DROP_ZIPS)
	echo "$(CURDIR)/python" > "$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/skewext.pth"
	touch $@

$(CLIENT_VENV)/.stamp: python/requirements-dev.txt python/requirements-connect.txt project/spark-lines.properties
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	grep -hE '^(duckdb|hypothesis|numpy|pytest|setuptools)==' $< > $(@D)/requirements.txt
	cat python/requirements-connect.txt >> $(@D)/requirements.txt
	echo '$(CLIENT)' >> $(@D)/requirements.txt
	$(PIP_BUILD) $(@D)/bin/python $(PIP_INSTALL) --use-pep517 -r $(@D)/requirements.txt
	$(DROP_ZIPS)
	touch $@

$(TOOLS_VENV)/.stamp: python/requirements-tools.txt python/requirements-dev.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	grep -hE '^(hypothesis|pyspark|pytest|setuptools)==' python/requirements-dev.txt > $(@D)/requirements.txt
	cat $< >> $(@D)/requirements.txt
	$(PIP_BUILD) $(@D)/bin/python $(PIP_INSTALL) --use-pep517 -r $(@D)/requirements.txt
	$(DROP_ZIPS)
	echo "$(CURDIR)/python" > "$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/skewext.pth"
	touch $@

$(SITE_VENV)/.stamp $(RELEASE_VENV)/.stamp: .venv-%/.stamp: build-tools/%/requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "This needs Python 3.10 or newer; choose one with PYTHON=..." >&2; exit 1; }
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(PIP_INSTALL) -r $<
	touch $@

# From a folder put together for it, so that no file of an earlier build gets in. Jars of other lines
# go with it if they are there; `make wheel` sees to it that they are, and are new.
$(WHEEL): $(JAR_STAMP) $(VENV_STAMP) $(PYTHON_FILES) python/pyproject.toml README.md
	rm -rf $(WHEEL_SOURCES) python/dist
	mkdir -p $(WHEEL_SOURCES) python/dist
	umask 022; cp -R python/pyspark_skewext python/pyproject.toml README.md LICENSE NOTICE $(WHEEL_SOURCES)
	umask 022; cp version.txt $(WHEEL_SOURCES)/pyspark_skewext
	umask 022; $(PY) -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation \
	  -w python/dist ./$(WHEEL_SOURCES)
