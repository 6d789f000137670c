# Every target prepares .venv (wheels/setup.sh) and then runs its command in it.
.DEFAULT_GOAL := help
.PHONY: help env demo test test-exhaustive test-lib lint docs bench attack soak lock clean
IN_ENV := sh wheels/setup.sh
# The suite starts hundreds of processes, which need byte code. Assertions are not rewritten, since that costs each process
# 20 s: a failing test shows its variables, and in the second try, alone, the values in its assertions.
# Tests of nodes mostly wait, so there are more processes than cores.
JOBS ?= $(shell [ "$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)" -gt 2 ] && echo 6 || echo 4)
SEED ?= 1
SHARE ?= 1
PART ?= 1/1
HOURS ?= 1
BUILDER ?= html

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r target text; do printf '  make %-15s %s\n' "$$target" "$$text"; done

env: ## make .venv with ROS 2, this package and everything for tests and extras; PYTHON=... chooses the Python (3.10 to 3.13)
	@$(IN_ENV) --dev

# only options from make's command line: some shells set a variable HOST
demo_option = $(if $(filter command,$(origin $(1))),--$(2)="$($(1))")
demo: ## run terrain, bridge and a convoy on real ROS 2 nodes; DURATION=10 stops it after 10 s; MAP=… FLEET=… HOST=… choose others
	@PYTHONDONTWRITEBYTECODE= PYTHONSAFEPATH=1 $(IN_ENV) python -m rfly_bringup.demo $(call demo_option,MAP,map) $(call demo_option,FLEET,fleet) $(call demo_option,HOST,host)

test: ## run the whole test suite; JOBS=2 uses two processes. Failed tests run again, alone: nodes need a machine that is not too busy
	@PYTHONDONTWRITEBYTECODE= $(IN_ENV) --dev --browser --stations --colcon \
	pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --assert=plain --showlocals && echo 'second try needed: 0' || \
	{ code=$$?; [ $$code -eq 1 ] || exit $$code; \
	echo 'what failed, once more and alone:'; $(IN_ENV) --dev pytest --last-failed --last-failed-no-failures none; }

test-exhaustive: ## run the tests that make test leaves out: longer loops, more worlds, seeds, peers and values (minutes); PART=2/6 a sixth of them
	@PYTHONDONTWRITEBYTECODE= $(IN_ENV) --dev --browser --stations --colcon \
	pytest -n $(JOBS) --dist load --assert=plain --showlocals -m exhaustive --part $(PART) || \
	{ code=$$?; [ $$code -eq 1 ] || exit $$code; \
	echo 'what failed, once more and alone:'; $(IN_ENV) --dev pytest --last-failed --last-failed-no-failures none -m exhaustive; }

test-lib: ## run the library tests alone: no ROS, no compiler, minutes
	@$(IN_ENV) --lib pytest -m "not ros and not needs_launch and not slow and not exhaustive"

lint: ## run ruff and mypy
	@$(IN_ENV) --lib ruff check .
	@$(IN_ENV) --lib mypy

docs: ## build the documents and the API reference as a searchable site: build/site/index.html; BUILDER=dummy only looks for warnings
	@$(IN_ENV) --lib --docs python -m sphinx --builder $(BUILDER) --fail-on-warning --keep-going --quiet -j auto -d build/doctrees docs build/site
	@[ $(BUILDER) != html ] || echo "build/site/index.html"

bench: ## compare the speed with alternatives in one table; FLOOD=20 SCALE=10 shorten the flood of 600 s and the fleets' 60 s; SHORT=1 tries each once; WRITE=1 writes docs/benchmarks.md
	@$(if $(FLOOD),RFLY_FLOOD_SECONDS=$(FLOOD)) $(if $(SCALE),RFLY_SCALE_SECONDS=$(SCALE)) \
	$(IN_ENV) --dev --peers python -m benchmarks $(if $(SHORT),--short) $(if $(WRITE),--write)

attack: ## send signal storms, odd messages, files and peers, and kill nodes (minutes); SEED=2 draws others, SHARE=0.1 a tenth. make test has a short form
	@$(IN_ENV) --dev python -m attacks --seed $(SEED) --share $(SHARE) $(AREAS)

soak: ## run fleet, viewer and a land-air vehicle for HOURS=1 and watch them: build/soak.png
	@$(IN_ENV) --dev python -m attacks.soak $(HOURS)

lock: ## renew wheels/requirements*.txt from pyproject.toml and wheels/requirements.in
	@$(IN_ENV) --lib python wheels/lock.py

clean: ## remove .venv, build/wheels and caches; never colcon's folders
	@rm -rf .venv .venv.removed build/wheels build/site build/doctrees .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@rmdir build 2>/dev/null || true
	@find . -name __pycache__ -type d -not -path './install/*' -prune -exec rm -rf {} +
