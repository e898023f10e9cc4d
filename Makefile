# The front door. CMake does the building (CMakePresets.json); this file only names the usual tasks.

# The preset that `make`, `make demo` and `make test` use; the result is in build/$(PRESET).
PRESET ?= release
# For `make test`: one label or several, separated by commas. Empty: all tests.
T ?=
# For `make bench`: options such as --pairs 3 or --only writer.
B ?=

# Instrumented programs are slow, so they run what finds most.
sanitized_labels := unit,conformance,scenarios

.DEFAULT_GOAL := build
.PHONY: build demo test bench bench-check lint format asan tsan clean help

build: ## Build the release: build/release/bin/postrider (the default)
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET)

demo: ## Install what is needed, build, and show two services, a relay between them, and faults
	scripts/install-deps run build
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --target postrider example_demo
	build/$(PRESET)/examples/demo

test: ## Install what is needed, build, and run the tests; T=unit,cli for some labels only
	scripts/install-deps run build test
	$(MAKE) build
	scripts/run-tests --build-dir build/$(PRESET) $(T)

bench: ## Measure against baselines on servers of its own; about 14 minutes, B="--pairs 3" for less
	scripts/install-deps run build test bench
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --target bench
	build/$(PRESET)/bench/bench --out build/$(PRESET)/bench/results.json $(B)

bench-check: ## Tell which goals the last `make bench` has missed
	build/$(PRESET)/bench/bench --check build/$(PRESET)/bench/results.json

lint: ## Check format, structure, clang-tidy on changed files, shell scripts
	scripts/install-deps build test lint
	scripts/lint

format: ## Format all C++ files in place
	scripts/install-deps lint
	scripts/lint --format

asan: ## Build with address and undefined-behaviour sanitizers and run the fast tests
	scripts/install-deps run build test
	cmake --preset asan
	cmake --build --preset asan
	scripts/run-tests --build-dir build/asan $(sanitized_labels)

# Where addresses are randomised over more bits than ThreadSanitizer of g++ 12 can map, it aborts at
# start; setarch -R switches that off for the tests.
tsan: ## Build with the thread sanitizer and run the fast tests
	scripts/install-deps run build test
	cmake --preset tsan
	cmake --build --preset tsan
	setarch -R scripts/run-tests --build-dir build/tsan $(sanitized_labels)

clean: ## Remove everything that was built
	rm -rf build

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
