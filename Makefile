# Without a target, `make` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The options of cargo for `kubectl untaint`, which is in a workspace of its own.
KUBECTL = --manifest-path kubectl/Cargo.toml --target-dir $(or $(CARGO_TARGET_DIR),target) --locked
BUILT = $(or $(CARGO_TARGET_DIR),target)/$(shell rustc --print host-tuple)
SCRIPTS := $(wildcard .ci/*) tests/cluster/assets tests/versions
KUSTOMIZATIONS := $(patsubst %/kustomization.yaml,%,$(wildcard deploy/*/kustomization.yaml))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Run the agent on one machine, without a cluster, and check what it does
	cargo run --example quickstart

# Builds the control plane, promtool and Helm first, because this can take minutes. If they cannot be built, the tests that
# need them say that they are skipped. With CI=true, these tests fail.
.PHONY: test
test: ## Run all tests, including those against a real API server
	@if assets=$$(tests/cluster/assets); then "$$assets/kube-apiserver" --version; else [[ $${CI:-} != true ]]; fi
	@if assets=$$(tests/cluster/assets promtool); then "$$assets/promtool" --version; else [[ $${CI:-} != true ]]; fi
	@if assets=$$(tests/cluster/assets helm); then "$$assets/helm" version --short; else [[ $${CI:-} != true ]]; fi
	cargo test --workspace --no-fail-fast
	cargo test $(KUBECTL)

.PHONY: chart
chart: ## Run the tests of the Helm chart, which are also a part of `make test`
	cargo test --test manifests chart::

# The oldest supported version of Kubernetes, one in the middle, and the newest. The first run builds all three.
.PHONY: test-versions
test-versions: VERSIONS =
test-versions: ## Run the tests with a real API server for each of VERSIONS (such as 1.30; by default all that are pinned), and print a table
	tests/versions $(VERSIONS)

# Needs root, and the packages that the program names if they are missing. The scenarios run in namespaces of their own and
# leave the machine as it is. The first run builds a kubelet and a container runtime, which takes minutes. `.ci/dist` builds
# with the same arguments, so that the dependencies are built once.
.PHONY: e2e
e2e: SCENARIO =
e2e: PROGRAM = $(abspath $(BUILT)/debug/untaint)
e2e: ## Run untaint on a real node, or only the scenarios SCENARIO; PROGRAM is the program to run instead of a debug build
	cargo build --workspace --bins
	cargo build $(KUBECTL)
	UNTAINT_BINARY=$(abspath $(PROGRAM)) $(BUILT)/debug/e2e $(SCENARIO)

# The soak tests of `make test`, one after another, with larger numbers.
.PHONY: soak
soak: ## Run the soak tests in full: 10,000 removals against other writers, reloads, load; about 30 minutes
	SOAK_REMOVALS=10000 SOAK_SWAPS=500 SOAK_LARGE_UPDATES=200 SOAK_UPDATES=10000 SOAK_CYCLES=1000 SOAK_BODIES=1000 \
		SOAK_PROBES=100000 cargo test --test soak -- --test-threads 1

# The test that checks the generated files also writes them.
.PHONY: generate
generate: ## Write the generated files: manifests, the schema of the configuration, the tables of its reference
	UNTAINT_GENERATE=true cargo test --quiet --test docs generated
	UNTAINT_GENERATE=true cargo test --quiet --test config_files

.PHONY: bench
bench: ## Print the performance table, measured against a real API server
	cargo bench --bench performance

# A test writes the page of a real agent, with rules that succeed and rules that fail.
.PHONY: screenshot
screenshot: PAGE = $(abspath $(BUILT)/tmp/statusz)
screenshot: ## Update docs/statusz.png, with chromium and pngquant
	rm -f $(PAGE).html
	cargo test --test behaviour server::the_page
	chromium --headless --no-sandbox --no-first-run --disable-gpu --disable-background-networking \
		--disable-component-update --disable-quic --disable-sync --user-data-dir="$$(mktemp -d)" \
		--hide-scrollbars --window-size=960,1315 --screenshot=$(PAGE).png file://$(PAGE).html
	pngquant --force --strip --output docs/statusz.png 32 $(PAGE).png

# No sanitizer: there is no unsafe code here, and the address sanitizer halves the speed. libFuzzer still reports inputs
# that use too much memory or time.
.PHONY: fuzz
fuzz: SECONDS_EACH := 30
fuzz: TARGETS = $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
fuzz: ## Run each fuzz target for SECONDS_EACH seconds, with cargo-fuzz and the nightly compiler
	for target in $(TARGETS); do \
		mkdir -p "fuzz/found/$$target"; \
		cargo +nightly fuzz run --sanitizer none "$$target" "fuzz/found/$$target" "fuzz/corpus/$$target" -- \
			-max_total_time=$(SECONDS_EACH) -max_len=4096 -timeout=5 -rss_limit_mb=1024 -print_final_stats=1; \
	done

.PHONY: lint
lint: ## Check format, lints, documents, generated files, dependencies, scripts and manifests
	cargo fmt --all --check
	cargo fmt --manifest-path kubectl/Cargo.toml --check
	cargo clippy --workspace --all-targets -- --deny warnings
	cargo clippy $(KUBECTL) --all-targets -- --deny warnings
	cargo test --quiet --test docs
	cargo deny check --deny warnings bans licenses sources
	cargo deny --manifest-path kubectl/Cargo.toml check --deny warnings bans licenses sources
	@if cargo deny fetch db; then $(MAKE) advisories; \
		else echo 'lint: skipped: advisories and yanked versions, as the database cannot be fetched'; fi
	@if [[ -d $$(rustc --print target-libdir --target $(MACOS)) ]]; then $(MAKE) macos; \
		else echo 'lint: skipped: macOS, as its standard library is missing (rustup target add $(MACOS))'; fi
	@if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); \
		else echo 'lint: skipped: scripts, as there is no shellcheck'; fi
	@if command -v kubectl >/dev/null; then \
		for directory in $(KUSTOMIZATIONS); do kubectl kustomize "$$directory" >/dev/null; done; \
		else echo 'lint: skipped: manifests, as there is no kubectl (make test checks them too)'; fi

# The C code of ring is not needed for the check, and a compiler that could build it is rarely there.
MACOS := aarch64-apple-darwin
.PHONY: macos
macos: ## Check that `untaint config`, `untaint manifests` and `kubectl untaint` build on macOS
	export CC_$(subst -,_,$(MACOS))=true AR_$(subst -,_,$(MACOS))=true; \
		cargo check --bin untaint --target $(MACOS); cargo check $(KUBECTL) --target $(MACOS)

# The result changes without a commit, and the database is on a server of another project. So `make lint` continues
# without the database, even with CI=true. This target fails without it. Run it every day and before a release.
.PHONY: advisories
advisories: ## Check for dependencies that have known defects or were yanked; needs the network
	cargo deny check --deny warnings advisories

.PHONY: release
release: ## Build the release binary, and check that it is static and small and lists its dependencies
	.ci/release

.PHONY: reproducible
reproducible: ## Build the release binary and the files of `make dist` in two different environments, and compare the bytes
	.ci/reproduce

# A release is that of a commit, so nothing may differ from it.
.PHONY: dist
dist: ARCHITECTURES = amd64 arm64
dist: ## Make the files of a release for ARCHITECTURES, in target/dist: programs, image, manifests, bills of materials
	@[[ -z $$(git status --porcelain) ]] || { echo 'make dist: commit or delete these files first:'; git status --short; exit 1; } >&2
	.ci/dist $$(git rev-parse HEAD) $$(git log --max-count 1 --format=%ct) $(ARCHITECTURES)

# RUST_IMAGE=docker.io/library/rust:TAG@sha256:… pins the image of the compiler: see docs/security.md.
.PHONY: image
image: BUILD := docker buildx build
image: PLATFORM := linux/amd64,linux/arm64
image: IMAGE := untaint
image: ## Build the image IMAGE for PLATFORM with the command BUILD, using the compiler in RUST_IMAGE
	$(BUILD) --platform $(PLATFORM) $(if $(RUST_IMAGE),--build-arg RUST_IMAGE=$(RUST_IMAGE)) \
		--build-arg REVISION=$$(git rev-parse HEAD) \
		--build-arg SOURCE_DATE_EPOCH=$$(git log --max-count 1 --format=%ct) --tag $(IMAGE) .

# Runs outside the repository, because the tools must not be built with its flags for static programs. The tools are not
# optimised, because the optimisation takes longer than it saves. A tool that has the version already is not built again.
.PHONY: tools
tools: TOOLS := cargo-deny@0.20.2 cargo-auditable@0.7.7 rust-audit-info@0.5.4
tools: ## Install the tools that `make lint` and `make release` need
	@cd / && for tool in $(TOOLS); do \
		grep --quiet --line-regexp "$${tool/@/ v}:" <(cargo install --list) || cargo install --locked --debug "$$tool"; \
	done

.PHONY: clean
clean: ## Delete everything that was built, including the control plane of the tests
	cargo clean
	rm -rf tests/cluster/.assets tests/cluster/*/.assets
