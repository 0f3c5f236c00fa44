# Two commands: `make run` (build, then the demo) and `make test` (everything). `make install` copies the program, its man pages and
# the completions of shells to $(PREFIX). The rest are their steps.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:

# The build cache lies outside the checkout: a clean clone does not build the world again.
CACHE := $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/tachograph
export CARGO_TARGET_DIR ?= $(CACHE)/target

# sqllogictest's own program, which the tests with real clients run.
SQLLOGICTEST_VERSION := 0.29.1
SQLLOGICTEST := $(CACHE)/tools/.sqllogictest-$(SQLLOGICTEST_VERSION)

PYTHON ?= python3
VENV := .venv
E2E := tests/e2e
# The tests with real clients wait more than they compute: several files run at once.
E2E_WORKERS ?= 4
say = @printf '\n== %s\n' "$(1)"

.PHONY: run test install release
.PHONY: test-long
.PHONY: setup debian format tidy dashboard build unit docs licences binary e2e attacks fuzz-brief

RELEASE := $(CARGO_TARGET_DIR)/release/tacho
# The page is built when its sources have changed, so that nothing is compiled again otherwise.
PAGE := dashboard/dist/index.html
PAGE_SOURCES := $(shell find dashboard/src dashboard/public -type f) $(wildcard dashboard/*.html dashboard/*.json dashboard/*.ts)
PREFIX ?= $(HOME)/.local
INSTALLED := $(DESTDIR)$(PREFIX)

# make run ARGS="--devices 50 --rate 2"
run: release
	exec "$(RELEASE)" demo $(ARGS)

release: $(if $(shell command -v npm),$(PAGE))
	@[ -e "$(RELEASE)" ] || echo "The first build takes 24 minutes on two cores, and 2 GB in $(CARGO_TARGET_DIR)."
	RUSTC_WORKSPACE_WRAPPER= cargo build --release --package tacho

# make install PREFIX=/usr/local
install: release
	install -D -m 755 "$(RELEASE)" "$(INSTALLED)/bin/tacho"
	mkdir -p "$(INSTALLED)"/share/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
	"$(RELEASE)" man --out "$(INSTALLED)/share/man/man1"
	"$(RELEASE)" completions bash > "$(INSTALLED)/share/bash-completion/completions/tacho"
	"$(RELEASE)" completions zsh > "$(INSTALLED)/share/zsh/site-functions/_tacho"
	"$(RELEASE)" completions fish > "$(INSTALLED)/share/fish/vendor_completions.d/tacho.fish"

# Cheap steps first: a forgotten format shows in seconds, not after the build.
test: setup format tidy dashboard build unit docs licences e2e attacks fuzz-brief
	$(call say,all tests passed)

setup: debian $(VENV)/.installed $(E2E)/node/node_modules/.installed go-modules $(SQLLOGICTEST)

debian:
	$(call say,setup: real clients and their tools)
	@$(E2E)/install-debian-packages

$(VENV)/.installed: $(E2E)/requirements.txt $(E2E)/requirements-thingsboard.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	rm -rf $(VENV)/thingsboard
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --target $(VENV)/thingsboard \
		--requirement $(E2E)/requirements-thingsboard.txt
	touch $@

# Without optimisation it is there in half the time.
$(SQLLOGICTEST):
	cargo install --quiet --debug --locked --root "$(CACHE)/tools" --version $(SQLLOGICTEST_VERSION) sqllogictest-bin
	touch $@

# npm prints nothing of interest for the tests; errors still show.
%/node_modules/.installed: %/package.json %/package-lock.json
	cd $* && npm ci --no-audit --no-fund --loglevel=error
	touch $@

# Go keeps them in its own cache.
.PHONY: go-modules
go-modules: debian
	cd $(E2E)/go && go mod download

format:
	$(call say,format)
	cargo fmt --check

tidy:
	$(call say,tidy: crate edges and paths in the docs)
	cargo xtask tidy

# The compiler notices a changed page by itself, but not the first one.
$(PAGE): $(PAGE_SOURCES) dashboard/node_modules/.installed
	cd dashboard && npm run --silent build
	touch crates/page/src/lib.rs

dashboard: $(PAGE)
	$(call say,dashboard tests)
	cd dashboard && npm test --silent

# Clippy is the compiler of our own crates here, so one build serves lints, tests, documentation and real clients.
# `cargo clippy` would compile all dependencies once more without code: ten minutes, and as many for `cargo doc`.
build unit docs binary: export RUSTC_WORKSPACE_WRAPPER := clippy-driver
build unit docs binary: export CLIPPY_ARGS := -Dwarnings__CLIPPY_HACKERY__

build:
	$(call say,lints and test programs)
	cargo test --quiet --workspace --all-targets --no-run

unit:
	$(call say,Rust tests)
	tests/rust-programs

docs:
	$(call say,documentation of our libraries)
	RUSTDOC="$(CURDIR)/tests/rustdoc-check" cargo test --quiet --workspace --doc

licences:
	$(call say,licences$(comma) bans and sources of dependencies)
	@if command -v cargo-deny >/dev/null; then cargo deny check licenses bans sources; \
	else echo "skipped: cargo-deny is not installed (cargo install cargo-deny)"; fi

# The tests with real clients take the development binary of `make build`; TACHO_BIN names another.
# Asked for by itself it would be built with other features of its dependencies, which takes many minutes.
binary: $(if $(TACHO_BIN),,build)

e2e attacks: export TACHO_BIN ?= $(CARGO_TARGET_DIR)/debug/tacho
e2e:
	$(call say,tests with real clients)
	$(VENV)/bin/python -m pytest $(E2E) --numprocesses $(E2E_WORKERS) --dist loadfile $(PYTEST_ARGS)

attacks:
	$(call say,attacks on the binary)
	$(VENV)/bin/python -m pytest -c $(E2E)/pytest.ini --rootdir tests tests/attacks

# Hours by hand: the random tests against the original servers, with many more statements.
test-long: export TACHO_TEST_STATEMENTS ?= 20000
test-long: export TACHO_BIN ?= $(CARGO_TARGET_DIR)/debug/tacho
test-long: setup binary
	$(call say,random statements against the original servers)
	$(VENV)/bin/python -m pytest $(E2E)/test_influx_differential.py $(E2E)/test_postgres_differential.py $(PYTEST_ARGS)

# A few seconds per target: finds the shallow faults; the deep ones need hours by hand (fuzz/README.md).
fuzz-brief:
	$(call say,fuzz targets$(comma) briefly)
	fuzz/brief

comma := ,
