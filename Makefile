# `make` alone lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BUILT = $(or $(CARGO_TARGET_DIR),target)/$(shell rustc --print host-tuple)
SCRIPTS := $(wildcard .ci/*) tests/cluster/assets
KUSTOMIZATIONS := $(patsubst %/kustomization.yaml,%,$(wildcard deploy/*/kustomization.yaml))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## See the main job done, without a cluster
	cargo run --example quickstart

# The control plane and promtool are built first, so that their minutes are seen. Where they cannot be, the tests that
# need them say so; with CI=true, they fail.
.PHONY: test
test: ## Run every test, those against a real API server included
	@if assets=$$(tests/cluster/assets); then "$$assets/kube-apiserver" --version; else [[ $${CI:-} != true ]]; fi
	@if assets=$$(tests/cluster/assets promtool); then "$$assets/promtool" --version; else [[ $${CI:-} != true ]]; fi
	cargo test --workspace --no-fail-fast

# The same tests as those of `make test`, one after another, each with many times as much.
.PHONY: soak
soak: ## Race other writers in 10,000 removals, reload under stress, and load; a line of each, some 30 minutes
	SOAK_REMOVALS=10000 SOAK_SWAPS=500 SOAK_LARGE_UPDATES=200 SOAK_UPDATES=10000 SOAK_CYCLES=1000 SOAK_BODIES=1000 \
		SOAK_PROBES=100000 cargo test --test soak -- --test-threads 1

# The test that says when they are not up to date writes them.
.PHONY: generate
generate: ## Write what is generated: manifests, the schema of the configuration, the tables of its reference
	UNTAINT_GENERATE=true cargo test --quiet --test docs generated

.PHONY: bench
bench: ## Print the performance table, measured against a real API server
	cargo bench --bench performance

# Of the page that a test leaves behind: a real agent's, with rules that did well and badly.
.PHONY: screenshot
screenshot: PAGE = $(abspath $(BUILT)/tmp/statusz)
screenshot: ## Make docs/statusz.png anew, with chromium and pngquant
	rm -f $(PAGE).html
	cargo test --test behaviour server::the_page
	chromium --headless --no-sandbox --no-first-run --disable-gpu --disable-background-networking \
		--disable-component-update --disable-quic --disable-sync --user-data-dir="$$(mktemp -d)" \
		--hide-scrollbars --window-size=960,1290 --screenshot=$(PAGE).png file://$(PAGE).html
	pngquant --force --strip --output docs/statusz.png 32 $(PAGE).png

# Without a sanitizer, as nothing here is unsafe, and that of addresses halves the speed. What grows without bound or
# does not end is a finding all the same.
.PHONY: fuzz
fuzz: SECONDS_EACH := 30
fuzz: TARGETS = $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
fuzz: ## Run each fuzz target for SECONDS_EACH, with cargo-fuzz and the nightly compiler
	for target in $(TARGETS); do \
		mkdir -p "fuzz/found/$$target"; \
		cargo +nightly fuzz run --sanitizer none "$$target" "fuzz/found/$$target" "fuzz/corpus/$$target" -- \
			-max_total_time=$(SECONDS_EACH) -max_len=4096 -timeout=5 -rss_limit_mb=1024 -print_final_stats=1; \
	done

.PHONY: lint
lint: ## Check format, lints, documents, generated files, dependencies, scripts and manifests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- --deny warnings
	cargo test --quiet --test docs
	cargo deny check --deny warnings bans licenses sources
	@if cargo deny fetch db; then $(MAKE) advisories; \
		else echo 'lint: skipped: advisories and yanked versions, as the database cannot be fetched'; fi
	@if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); \
		else echo 'lint: skipped: scripts, as there is no shellcheck'; fi
	@if command -v kubectl >/dev/null; then \
		for directory in $(KUSTOMIZATIONS); do kubectl kustomize "$$directory" >/dev/null; done; \
		else echo 'lint: skipped: manifests, as there is no kubectl (make test checks them too)'; fi

# What it says changes without a commit, and its database is somebody else's server: `make lint` goes on without it, with
# CI=true too. Here it must be there, for a daily run and before a release.
.PHONY: advisories
advisories: ## Check for dependencies with known defects and for yanked ones; needs the network
	cargo deny check --deny warnings advisories

.PHONY: release
release: ## Build the static binary and check that it is one, small, and lists its dependencies
	.ci/release

.PHONY: reproducible
reproducible: ## Build the release binary here and elsewhere, and check that both are the same to the byte
	.ci/reproduce

# RUST_IMAGE=docker.io/library/rust:TAG@sha256:… pins what it is built with: docs/security.md.
.PHONY: image
image: BUILD := docker buildx build
image: PLATFORM := linux/amd64,linux/arm64
image: IMAGE := untaint
image: ## Build the image IMAGE for PLATFORM with BUILD, from RUST_IMAGE
	$(BUILD) --platform $(PLATFORM) $(if $(RUST_IMAGE),--build-arg RUST_IMAGE=$(RUST_IMAGE)) \
		--build-arg REVISION=$$(git rev-parse HEAD) \
		--build-arg SOURCE_DATE_EPOCH=$$(git log --max-count 1 --format=%ct) --tag $(IMAGE) .

# From outside the repository, whose flags for static programs are not meant for them, and not optimised, which would
# take longer than it saves. A tool of that version is left as it is.
.PHONY: tools
tools: TOOLS := cargo-deny@0.20.2 cargo-auditable@0.7.7 rust-audit-info@0.5.4
tools: ## Install the tools that `make lint` and `make release` need
	@cd / && for tool in $(TOOLS); do \
		grep --quiet --line-regexp "$${tool/@/ v}:" <(cargo install --list) || cargo install --locked --debug "$$tool"; \
	done

.PHONY: clean
clean: ## Delete what was built, the control plane of the tests included
	cargo clean
	rm -rf tests/cluster/.assets tests/cluster/promtool/.assets
