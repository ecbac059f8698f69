# Each target sets up what it needs: `make demo` on a bare machine needs a JDK, Python, and sbt or Maven.

PYTHON ?= python3
include project/spark-lines.properties
DEFAULT := $(firstword $(lines))
FROM_PYSPARK := $(foreach line,$(lines),$(if $($(line).fromPySpark),$(line)))
NEWEST := $(lastword $(filter-out $(FROM_PYSPARK),$(lines)))
is_python_from = $(PYTHON) -c \
  'import sys; sys.exit(not [*map(int, "$(1)".split("."))] <= [*sys.version_info] < [3, 14])'
# SPARK=4.2 selects a line of Spark for any target. The demo runs on the newest line that Java and Python support.
SPARK ?= $(DEFAULT)
ifeq ($(MAKECMDGOALS) $(origin SPARK),demo file)
SPARK := $(shell { test "$$(build-tools/java-release)" -ge $($(NEWEST).java) && \
  $(call is_python_from,$($(NEWEST).python)); } 2> /dev/null && echo $(NEWEST) || echo $(DEFAULT))
endif
PYSPARK := $(or $($(SPARK).spark),$(error There is no line $(SPARK) of Spark; the lines are $(lines)))
NO_SUITES := $(filter $(FROM_PYSPARK),$(SPARK))

# A test JVM takes up to 3 GB. More than four in parallel gain nothing: the longest suite remains.
TEST_JOBS := $(or $(TEST_JOBS),$(shell $(PYTHON) -c 'import os; \
  jobs = len(getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count()))(0)); \
  memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"); print(max(1, min(4, jobs, memory // (3 << 30))))'))
export TEST_JOBS
VENV := .venv$(addprefix -,$(filter-out $(DEFAULT),$(SPARK)))
PY := $(VENV)/bin/python
# A stamp is the file that tells whether an environment or the jar is up to date. sbt touches that of the jar.
ENV := $(VENV)/.stamp-$(PYSPARK)
CLIENT := .venv-client-$(SPARK)/.stamp-$(PYSPARK)
JAR := python/pyspark_skewext/jars/.stamp-$(SPARK)
SBT := build-tools/sbt -Dspark.line=$(SPARK)
TARGET := target/spark-$(SPARK)
CLASS_ARCHIVE := $(TARGET)/classes.jsa
WHEEL := python/dist/pyspark_skewext-$(shell cat version.txt)-py3-none-any.whl

# Spark's workers must run the Python of the driver, and Spark must come from the virtual environment.
export PYSPARK_PYTHON := $(CURDIR)/$(PY)
unexport SPARK_HOME PYSPARK_DRIVER_PYTHON
# In the POSIX locale the JVM cannot open files whose names are not ASCII.
export LC_ALL := C.UTF-8
# All files in our archives get this time, so two builds have the same bytes. sbt reads it, too.
export SOURCE_DATE_EPOCH := 1262304000

MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
.PHONY: $(shell sed -n 's/^\([a-z][a-z -]*\):.*/\1/p' Makefile)
# Prerequisites run in order, so the Scala tests also build the jar. Only the lanes of `make test-ci` run in parallel.
ifeq ($(filter lane-%,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

# Runs a target for each of some lines, also after a failure.
for_each_line = status=0; for line in $(1); do $(MAKE) $(2) SPARK=$$line || status=1; done; exit $$status

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z -]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' Makefile
demo: $(JAR) $(ENV) ## Join six real tables, beside stock Spark and DuckDB
	$(PY) -m demo $(ARGS)

test: export SKEWEXT_TEST_QUICK := 1
test: $(if $(NO_SUITES),,test-scala) test-python ## The quick tests: Scala suites, pytest, the built wheel
test-all: export SKEWEXT_TEST_ALL := 1
test-all: $(CLIENT) test ## Also Spark's own suites, all random queries, all combinations of settings

test-line test-line-scala test-line-python: export SKEWEXT_TEST_LINE := 1
test-line: $(if $(NO_SUITES),,test-line-scala) test-line-python ## The tests for another line: SPARK=4.2
test-line-scala:
	$(MAKE) test-scala ONLY='$(suites) $($(SPARK).suites)'
test-line-python: $(if $(filter $(NEWEST),$(SPARK)),$(CLIENT))
	$(MAKE) test-python TESTS='$(tests) $($(SPARK).tests)'
test-lines: ## The same for each line but the default
	+$(call for_each_line,$(filter-out $(DEFAULT),$(lines)),test-line)

# Two lanes share the processors: one runs all Scala suites, as two sbt must not run at a time. The other one runs the
# Python tests, line by line, the longest first. The lane that ends first takes the next line. Environments, jars and
# the wheel are built before, so that no lane replaces a file that the other one reads.
LANES := $(if $(filter 1,$(TEST_JOBS)),1,2)
BY_SIZE := $(DEFAULT) $(NEWEST) $(FROM_PYSPARK)
BY_SIZE += $(filter-out $(BY_SIZE),$(lines))
test-ci: export SKEWEXT_TEST_QUICK := 1
test-ci: ## The quick tests of the default line, a part of them on each other line: what CI runs
	status=0; $(MAKE) -k environments jars wheel-of-jars $(CLASS_ARCHIVE) || status=1; \
	  $(MAKE) -k -j $(LANES) TEST_JOBS=$$(($(TEST_JOBS) / $(LANES))) BUILT=1 lane-scala $(BY_SIZE:%=lane-python-%) && \
	  exit $$status
lane-scala:
	status=0; $(MAKE) test-scala || status=1; $(MAKE) test-line-scala SPARK=$(NEWEST) && exit $$status
lane-python-%:
	mkdir -p target/lanes; log=target/lanes/$*.log; \
	  $(MAKE) $(if $(filter $(DEFAULT),$*),test-python,test-line-python) SPARK=$* > $$log 2>&1; \
	  status=$$?; cat $$log; exit $$status
# Reports of an earlier run must not be counted.
test-scala: ## The Scala suites; ONLY='*ZipSuite' runs some
	rm -rf $(TARGET)/scalatest.txt $(TARGET)/test-reports
	$(SBT) $(if $(BUILT),,bundleJar testJars) "$(if $(ONLY),testOnly $(ONLY),test)"; status=$$?; \
	  $(PYTHON) build-tools/count_tests.py $(TARGET)/scalatest.txt && exit $$status
# The smoke test of the wheel runs only here, where the wheel is up to date. The archive pays if many sessions start.
test-python: $(WHEEL) $(ENV) $(if $(ARGS)$(TESTS),,$(CLASS_ARCHIVE)) ## pytest; ARGS='-k name' runs some, in one process
	cd python && ../$(PY) -m pytest -o 'python_files=test_*.py smoke_*.py' $(or $(ARGS),-n $(TEST_JOBS) --dist loadfile \
	  --no-loadscope-reorder --durations=10 --junitxml=../$(TARGET)/pytest.xml $(TESTS))

test-spark: export SKEWEXT_TEST_ALL := 1
test-spark: $(ENV) ## Spark's own suites and all of TPC-DS, which take too long for CI
	$(MAKE) test-scala ONLY='io.github.skewext.sparktests.*'
	cd python && SKEWEXT_TPCDS=all ../$(PY) -m pytest tests/test_tpcds.py
fuzz: $(JAR) $(ENV) ## Random queries on three engines, for MINUTES=10, or ARGS='--seed 7 --count 5000'
	cd fuzz && PYTHONPATH=$(CURDIR)/python/tests ../$(PY) -m random_sql $(or $(ARGS),--minutes $(or $(MINUTES),10))
test-merge: ## Random MERGEs into tables of Iceberg; MERGES=10000
	SKEWEXT_RANDOM_MERGES=$(or $(MERGES),1000) $(MAKE) test-scala ONLY='*RandomMergeSuite'
# sparkMeasure also needs its jar. The code blocks of tools.md need the tools.
test-tools: export PYSPARK_SUBMIT_ARGS := --packages ch.cern.sparkmeasure:spark-measure_2.12:0.24 pyspark-shell
test-tools: export PYSPARK_PYTHON := $(CURDIR)/.venv-tools/bin/python
test-tools: $(JAR) .venv-tools/.stamp ## Tools on top of Spark: the same rows with the extension and without
	$(if $(filter-out $(DEFAULT),$(SPARK)),$(error The tools run on Spark $(DEFAULT) only))
	cd python && SKEWEXT_TEST_TOOLS=1 $(PYSPARK_PYTHON) -m pytest tests/test_tools.py \
	  'tests/test_docs.py::test_examples_print_what_the_document_says[tools.md]'
matrix: $(JAR) $(ENV) ## A smoke test with every Python here; MATRIX=full: also every release of PySpark
	$(PY) build-tools/matrix.py $(if $(filter full,$(MATRIX)),--full) $(ARGS)
bench: $(JAR) $(ENV) ## The benchmarks, or BENCH=case; ARGS='--help' lists them; SCRIPT=tpch: another script
	$(PY) bench/$(or $(SCRIPT),run).py $(ARGS) $(BENCH)
bench-public: $(JAR) $(ENV) ## Benchmarks that others know, small: 30 minutes on two cores
	for run in $(PUBLIC); do $(PY) bench/$$(echo $$run | tr : ' ') || exit 1; done
PUBLIC = tpch.py:--scale:0.2:--rounds:1:--ways:stock,ours tpcds.py:--scale:0.2:--rounds:1:--no-warm-up:--ways:stock,ours \
  skewed_tpch.py:--scale:0.2:--rounds:1 db_benchmark.py:--scale:1:--rounds:1 ranges.py:--scale:0.1:--rounds:1 \
  or_joins.py:--scale:0.2:--rounds:1 job.py:--processes:2:--scale:0.2

fmt: $(ENV) ## Format all sources and repair what the linters can
	$(SBT) scalafixAll scalafmtAll scalafmtSbt
	$(PY) -m ruff check --fix-only
	$(PY) -m ruff format
check: check-python check-scala site ## Formatting, linters, types, generated docs up to date, links
check-python: $(ENV)
	$(PY) -m ruff format --check
	$(PY) -m ruff check
	cd python && ../$(PY) -m mypy
	MYPYPATH=bench:python $(PY) -m mypy --config-file python/pyproject.toml bench/*.py bench/harness/*.py
	MYPYPATH=fuzz:python:python/tests $(PY) -m mypy --config-file python/pyproject.toml fuzz/random_sql/*.py
generated = "Test/runMain io.github.skewext.SettingsDoc $(1) docs/settings.md" \
  "Test/runMain io.github.skewext.ReasonsDoc $(1) docs/explain.md"
check-scala:
	$(SBT) scalafmtCheckAll scalafmtSbtCheck scalafixCheck Test/compile bundleJar testJars $(call generated,--check)
docs: ## Write docs/settings.md, and the tables of docs/explain.md, from the code
	$(SBT) $(generated)
site: .venv-site/.stamp ## The documentation as a site, in target/site; warnings, as of links, are errors
	.venv-site/bin/python build-tools/site/build.py
scaladoc: ## The reference for Scala and Java, in target/site/scaladoc, after `make site`
	$(SBT) doc
	rm -rf target/site/scaladoc && mkdir -p target/site && cp -R $(TARGET)/scala-*/api target/site/scaladoc

# CI compiles while it downloads the environments: one needs a core, the other the network.
compile-newest: ## Compile the jar and tests of the newest line of Spark that Maven has
	build-tools/sbt -Dspark.line=$(NEWEST) bundleJar testJars Test/compile
environment: $(ENV) $(if $(filter $(NEWEST),$(SPARK)),$(CLIENT)) ## The virtual environment, with what tests need
jar: $(JAR) ## The jar, put into the Python package
environments jars: %s: ## The same for all lines of Spark
	+$(call for_each_line,$(lines),$*)
wheel: jars wheel-of-jars ## The wheel, with the jars of all lines inside, in python/dist
wheel-of-jars:
	rm -f $(WHEEL)
	$(MAKE) $(WHEEL)
RELEASED := $(if $(DRY_RUN),$(if $(ALL_LINES),$(lines),$(SPARK)),$(lines))
release: .venv-release/.stamp $(ENV) ## A release in target/release: VERSION=x.y.z; DRY_RUN=1 is a trial
	+$(call for_each_line,$(filter $(FROM_PYSPARK),$(RELEASED)),environment)
	.venv-release/bin/python build-tools/release/release.py \
	  $(if $(DRY_RUN),--dry-run,$(VERSION)) $(if $(SKIP_TESTS),--skip-tests) --lines $(RELEASED)
clean: ## Remove what was built; virtual environments and downloads stay
	rm -rf target project/target project/project python/pyspark_skewext/jars python/dist \
	  python/.mypy_cache python/.pytest_cache python/.hypothesis .ruff_cache skewext-demo
	find python fuzz bench build-tools -name __pycache__ -prune -exec rm -rf {} +
distclean: clean ## Remove these, too
	rm -rf .venv .venv-* .cache

$(JAR): $(shell find scala/src/main -type f) version.txt LICENSE NOTICE build.sbt $(wildcard project/*.*) \
  $(if $(NO_SUITES),$(ENV))
	$(SBT) bundleJar testJars
# It has Spark's classes. Ours come from a jar that a session adds.
$(CLASS_ARCHIVE): build-tools/class_archive.py $(ENV) | $(JAR)
	$(PY) $< $@
# Built in a new folder, so that no file of an earlier build gets in. The wheel takes all jars that are there.
$(WHEEL): $(JAR) $(ENV) $(shell find python/pyspark_skewext -name '*.py') python/pyproject.toml README.md
	rm -rf target/wheel python/dist && mkdir -p target/wheel python/dist
	umask 022 && cp -R python/pyspark_skewext python/pyproject.toml README.md LICENSE NOTICE target/wheel && \
	  cp version.txt target/wheel/pyspark_skewext && \
	  $(PY) -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w python/dist ./target/wheel

# PySpark 4 contains Spark Connect. For PySpark 3.5 only the client's environment has its requirements.
$(ENV): python/requirements-dev.txt $(if $(filter 4.%,$(SPARK)),python/requirements-connect.txt)
$(CLIENT): python/requirements-connect.txt python/requirements-dev.txt
.venv-tools/.stamp: python/requirements-tools.txt
.venv-site/.stamp .venv-release/.stamp: .venv-%/.stamp: build-tools/%/requirements.txt
$(ENV): PACKAGES = $(^:%=-r %) pyspark==$(PYSPARK)
$(CLIENT): PACKAGES = -r $< -c python/requirements-dev.txt duckdb hypothesis numpy pytest setuptools \
  pyspark$(if $(filter 4.%,$(SPARK)),-client)==$(PYSPARK)
$(ENV) $(CLIENT): OLDEST = $($(SPARK).python)
.venv-tools/.stamp: PACKAGES = -r $< pyspark==$($(DEFAULT).spark)

# pip neither compresses wheels that it builds nor compiles modules: 36 s instead of 59. Without PySpark's zip of itself
# Python lists no files in each task. The .pth file makes the package in the tree importable.
$(ENV) $(CLIENT) .venv-tools/.stamp .venv-site/.stamp .venv-release/.stamp:
	@$(call is_python_from,$(or $(OLDEST),3.10)) || \
	  { echo "$(@D) needs Python $(or $(OLDEST),3.10) to 3.13; choose one with PYTHON=..." >&2; exit 1; }
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	DIST_EXTRA_CONFIG=$(CURDIR)/build-tools/pip-build.cfg $(@D)/bin/python -m pip install -q \
	  --disable-pip-version-check --no-compile --use-pep517 $(or $(PACKAGES),-r $<)
	cd $(@D)/lib/python*/site-packages && rm -f pyspark/python/lib/*.zip && echo "$(CURDIR)/python" > skewext.pth
	touch $@
