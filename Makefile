# The few commands that people type. Each installs what it needs and the machine lacks.

PREFIX ?= /usr/local
CARGO  ?= cargo
# Two jobs are what the reference machine has; cargo picks its own number elsewhere.
CARGO_FLAGS ?= --locked
# The tests that were skipped, a line each.
SKIPPED = $(CURDIR)/build/skipped

.PHONY: help demo check test test-long test-numa bench truth reproduce traces docs book pictures install wheel build tool lint miri sanitize clean

help:
	@echo 'make demo              see it work, in a minute: a program that waits, what to do, the patch, predicted and measured'
	@echo 'make check             in minutes: format, clippy, and the quick tests of what changed and of what depends on it'
	@echo 'make test              the whole suite (lint, unit, end-to-end, oracles); ends with the seconds of each stage'
	@echo 'make test-long         the suite with all cases of all properties, all runs of the workloads, fuzzing, sanitizers, Miri'
	@echo 'make test-numa         of these, what needs several NUMA nodes: in guests of QEMU'
	@echo 'make bench             speed, side by side with other tools, as ratios (long)'
	@echo 'make truth             pairs of programs before and after a change, measured and predicted (long)'
	@echo 'make reproduce         the papers'\'' tables and figures, theirs beside ours (long)'
	@echo 'make traces            records the server workloads of workloads/servers into build/traces (TRACES_FLAGS="--size book": larger)'
	@echo 'make docs              the documents of the crates, and the book'
	@echo 'make pictures          the pictures of the README and the book, by a browser'
	@echo 'make book              the book alone, in build/book; fails on dead links'
	@echo 'make miri              the unsafe parts under Miri (needs a nightly toolchain with it)'
	@echo 'make sanitize          the library and its C programs under AddressSanitizer and ThreadSanitizer (the latter needs a nightly)'
	@echo 'make wheel             the Python package, with the command and its tool, in build/wheels'
	@echo 'make install PREFIX=D  the command, its Valgrind tool and compilers, the library, man pages, completions under D'

build: tool
	$(CARGO) build $(CARGO_FLAGS) --release -p domicile -p domicile-preload
	$(MAKE) --no-print-directory -C compiler

tool:
	@setup/debian build
	$(MAKE) --no-print-directory -C capture/valgrind

demo:
	@setup/debian demo
	@$(MAKE) --no-print-directory build
	@demo/run

lint:
	@if $(CARGO) fmt --version >/dev/null 2>&1; then $(CARGO) fmt --check; \
	 else echo 'skipped: cargo fmt is not installed (rustup component add rustfmt)'; fi
	@if $(CARGO) clippy --version >/dev/null 2>&1; then $(CARGO) clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings; \
	 else echo 'skipped: cargo clippy is not installed (rustup component add clippy)'; fi

check:
	@setup/suite check

# What cannot run here says so, and is counted. As root nothing may be lacking that root may have (crates/harness).
# What is skipped for lack of nodes runs in the suite's guests, and leaves the list.
test:
	@setup/debian test
	@mkdir -p $(dir $(SKIPPED)) && rm -f $(SKIPPED)
	@DOMICILE_PEERS=required DOMICILE_SKIPPED=$(SKIPPED) CARGO="$(CARGO)" CARGO_FLAGS="$(CARGO_FLAGS)" setup/suite test; \
	  status=$$?; setup/skipped $(SKIPPED); exit $$status

test-long:
	@setup/debian test
	@mkdir -p $(dir $(SKIPPED)) && rm -f $(SKIPPED)
	@DOMICILE_PEERS=required DOMICILE_SKIPPED=$(SKIPPED) CARGO="$(CARGO)" CARGO_FLAGS="$(CARGO_FLAGS)" setup/suite long; \
	  status=$$?; setup/skipped $(SKIPPED); exit $$status

# What needs several NUMA nodes, in guests that have them.
test-numa:
	@setup/debian numa
	CARGO="$(CARGO)" guest/test $(CARGO_FLAGS)

bench:
	@setup/debian bench
	@$(MAKE) --no-print-directory build
	@crates/sim/tests/oracles/pycachesim.sh
	@bench/run

pictures:
	@setup/debian pictures
	@$(MAKE) --no-print-directory build
	@docs/pictures

truth: export DOMICILE_COMMIT := $(shell git rev-parse --short HEAD 2>/dev/null)
truth:
	@setup/debian truth
	@$(MAKE) --no-print-directory build
	@mkdir -p build/truth
	@rm -f build/truth/truth.json
	@# Exit status 1 with a result: some pairs failed, and are named in it.
	TMPDIR=$(CURDIR)/build/truth target/release/domicile truth truth/pairs.toml -o build/truth/truth.json $(filter-out --write-book,$(TRUTH_FLAGS)) \
	  || { status=$$?; [ $$status -eq 1 ] && [ -e build/truth/truth.json ] || exit $$status; echo "make truth: goes on without the pairs that failed" >&2; }
	$(if $(filter --write-book,$(TRUTH_FLAGS)),cargo run --quiet --package xtask -- truth build/truth/truth.json)

PAPERS = $(patsubst papers/%/paper.toml,%,$(wildcard papers/*/paper.toml))
# The workloads that a paper is about; `make traces` knows more.
TRACED = engineering raytrace splash database pmake-whole
SINGLE = gzip bzip2 xz sort sqlite perl cc1 vvp povray glpsol
TOGETHER = server raytrace

reproduce:
	@setup/debian reproduce
	@$(MAKE) --no-print-directory build
	$(MAKE) --no-print-directory -C workloads
	@# Once: the traces that verghese96 is of, larger ones with --full.
	@workloads/servers/record --fetches --missing --size $(if $(findstring --full,$(REPRODUCE_FLAGS)),book,small) $(TRACED) \
	  || echo "make reproduce: goes on without what was not recorded" >&2
	@# And once: the programs of lee12, which it records itself.
	@for name in $(SINGLE); do [ -e build/traces/inputs/single-$$name-small/command ] || workloads/servers/single/run --prepare $$name small; done
	@for name in $(TOGETHER); do [ -e build/traces/inputs/together-$$name-small/command ] || workloads/servers/together/run --prepare $$name small; done
	for paper in $(PAPERS); do target/release/domicile reproduce $$paper $(filter-out --write-book,$(REPRODUCE_FLAGS)) \
	  $(if $(filter --write-book,$(REPRODUCE_FLAGS)),--write-book docs/src/$$paper.md) || exit; done

traces:
	@setup/debian traces
	@$(MAKE) --no-print-directory build
	@workloads/servers/record $(TRACES_FLAGS)

docs: book
	$(CARGO) doc $(CARGO_FLAGS) --workspace --no-deps

# Debian 12 has neither. Each lies below its version, so that another one is installed anew.
MDBOOK    = build/tools/mdbook-0.5.4
HYPERLINK = build/tools/hyperlink-0.3.2
TOOL = $(CARGO) install --locked --version $(lastword $(subst -, ,$1)) --root $1
$(MDBOOK)/bin/mdbook:
	$(call TOOL,$(MDBOOK)) --no-default-features --features search mdbook
$(HYPERLINK)/bin/hyperlink:
	$(call TOOL,$(HYPERLINK)) hyperlink

book:
	@setup/debian docs
	$(CARGO) run $(CARGO_FLAGS) -q -p xtask -- generate
	@$(MAKE) --no-print-directory $(MDBOOK)/bin/mdbook $(HYPERLINK)/bin/hyperlink
	@docs/render $(MDBOOK)/bin/mdbook $(HYPERLINK)/bin/hyperlink

wheel: build
	@python/wheel release

install: build
	$(MAKE) --no-print-directory -f crates/capi/Makefile \
	  DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) CARGO="$(CARGO)" CARGO_FLAGS="$(CARGO_FLAGS)" install
	install -Dm755 target/release/domicile $(DESTDIR)$(PREFIX)/bin/domicile
	install -Dm755 target/release/libdomicile_preload.so $(DESTDIR)$(PREFIX)/lib/domicile/libdomicile_preload.so
	@if command -v strip >/dev/null; then strip --strip-debug $(DESTDIR)$(PREFIX)/lib/domicile/libdomicile_preload.so; fi
	$(MAKE) --no-print-directory -C capture/valgrind \
	  DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) install
	$(MAKE) --no-print-directory -C compiler DESTDIR=$(DESTDIR) PREFIX=$(abspath $(PREFIX)) install
	@# The papers' programs, where they were built: `domicile reproduce` finds them there.
	@for build in count time; do for program in workloads/build/$$build/*-*; do if [ -x "$$program" ]; then \
	  install -Dm755 "$$program" $(DESTDIR)$(PREFIX)/libexec/domicile/workloads/$$build/$${program##*/} || exit 1; fi; done; done
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|/usr/local/bin|$(PREFIX)/bin|' setup/systemd/domicile.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/domicile.service
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	target/release/domicile man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	target/release/domicile completions bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/domicile
	target/release/domicile completions zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_domicile
	target/release/domicile completions fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/domicile.fish

# Data races, aliasing, use after free: where memory is handled by hand, as far as Miri knows the calls; and the threads of a run.
# Areas are known by the addresses of their pages, which strict provenance does not allow.
MIRI = $(CARGO) +nightly miri test $(CARGO_FLAGS)
miri:
	@if $(CARGO) +nightly miri --version >/dev/null 2>&1; then set -ex; \
	  MIRIFLAGS=-Zmiri-strict-provenance $(MIRI) -p domicile-live --lib -- summaries::; \
	  MIRIFLAGS=-Zmiri-strict-provenance $(MIRI) -p domicile-capi --lib --test from_rust --test slots; \
	  MIRIFLAGS=-Zmiri-permissive-provenance $(MIRI) -p domicile-sys --lib -- arrays:: chase:: containers:: memory:: requests::; \
	  MIRIFLAGS=-Zmiri-disable-isolation $(MIRI) -p domicile-threads --test dependencies --test inside --test stress; \
	else \
	  echo 'skipped: there is no Miri (rustup toolchain install nightly --component miri,rust-src)'; \
	fi

# The library as it is installed, under programs in C, with a sanitizer in both: bounds and lifetimes, then data races.
sanitize:
	@setup/debian test
	crates/capi/tests/sanitize address
	crates/capi/tests/sanitize thread

clean:
	$(CARGO) clean
	rm -rf build bench-out
