# The commands of daily work. `make` builds, `make demo` shows the main job,
# `make test` runs the tests; they need only Rust, and Python for what runs Python.

PREFIX ?= /usr/local
TARGET ?= $(shell uname -m)-unknown-linux-musl
CARGO ?= cargo
BINARY = target/release/skills-runner
STATIC = target/$(TARGET)/release/skills-runner

.PHONY: build static demo test test-all check licences msrv oracle fuzz replay torture torture-sessions torture-memory torture-forks clients models bench bench-baseline install uninstall dist dist-tools dist-check packages-check release test-aarch64 test-aarch64-machine workflows wheel wheel-check clean

build:
	@$(CARGO) build --release --target-dir target

# One file that runs on any Linux of the target's processor, by default this machine's;
# TARGET=aarch64-unknown-linux-musl is the other. Without a compiler it prints how to get one.
static:
	packaging/with-toolchain $(TARGET) $(CARGO) build --release --locked --target-dir target --target $(TARGET)
	@ls -l $(STATIC)

demo: build
	@$(BINARY) --no-env-file demo

# What a newcomer runs: under five minutes on two cores, building included. Most tests wait
# for a process or a limit, so more of them run at once than there are cores.
TEST_THREADS ?= $(shell echo $$((2 * $$(nproc))))
test:
	$(CARGO) test --workspace -- --test-threads=$(TEST_THREADS)

# All tests, also those that take long (`#[ignore = "long"]`): one for each core, as some of
# them measure time.
test-all: test
	$(CARGO) test --test it -- --ignored

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items
	@packaging/count-lines

# Checks that every crate in the build has an allowed licence.
licences:
	@MAKE_CARGO='$(CARGO)' packaging/check-licences $(TARGET)

# Checks the code with exactly the Rust version that Cargo.toml promises
# (`rustup toolchain install` of it first). It has a folder of its own, so that
# switching compilers does not rebuild everything.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv:
	rustup run $(MSRV) cargo check --locked --workspace --target-dir target/msrv

# Compares the readers of .env and of frontmatter with the real python-dotenv
# and PyYAML on generated files.
oracle:
	$(CARGO) build --release --example dotenv_dump --example frontmatter_dump
	python3 -m venv target/oracle
	target/oracle/bin/pip install --quiet python-dotenv pyyaml
	target/oracle/bin/python tests/oracle/dotenv_oracle.py target/release/examples/dotenv_dump
	target/oracle/bin/python tests/oracle/yaml_oracle.py target/release/examples/frontmatter_dump

# Searches for input that violates a property in fuzz/, FUZZ_SECONDS per target;
# needs nightly Rust and cargo-fuzz.
FUZZ_SECONDS ?= 20
FUZZ_TARGETS ?=
fuzz:
	@fuzz/run $(FUZZ_SECONDS) $(FUZZ_TARGETS)

# Checks the same properties on the seeds and REPLAYS mutations of them, with stable Rust.
REPLAYS ?= 5000
replay:
	@cd fuzz && RUSTFLAGS="$(RUSTFLAGS)" $(CARGO) run --quiet --locked --example replay -- $(REPLAYS)

# Makes the program's system calls fail, 3,000 times: takes minutes, needs strace.
# TORTURE="--count 500 --seed 7" changes count and seed.
torture: build
	python3 tests/torture/torture.py $(BINARY) $(TORTURE)

# Kills the program while it writes sessions, 10,000 times: about 10 minutes.
torture-sessions: build
	python3 tests/torture/sessions.py $(BINARY) $(TORTURE)

# The same for the facts, and 16 writers of 1,000 facts each at once.
torture-memory: build
	python3 tests/torture/memory.py $(BINARY) kills $(TORTURE)
	python3 tests/torture/memory.py $(BINARY) writers

# Fork bombs of an ordinary user against the time limit, Ctrl+C and `kill -9`, with and
# without the sandbox, 20 of each: about 10 minutes. Needs root, to become that user.
torture-forks: build
	python3 tests/torture/forks.py $(BINARY) $(TORTURE)

# Runs other people's MCP clients against `mcp`: the Inspector, both Python SDKs, a
# LangChain agent, the conformance scenarios: 2 minutes. Needs Python 3.10; the first
# run installs the clients, 650 MB in target/clients.
# CLIENTS="inspector python" selects clients.
CLIENTS ?=
clients: build
	python3 tests/clients/clients.py $(BINARY) target/clients $(CLIENTS)

# Lets a real model do the tasks of tests/models at the endpoint that LLM_API_BASE_URL and
# LLM_MODEL_NAME name, and prints what was solved: minutes to hours.
# MODELS="--modes auto,native --tasks power,edit --seeds 1,2" selects.
models: build
	@python3 tests/models/run.py $(BINARY) $(MODELS)

# Measures speed, size and cost against the goals, in turns with curl, and reports what
# changed since benches/baseline.json; bench-baseline rewrites that file. One minute.
# BENCH="start stream" selects rows; other words: --quick, --strict, --json FILE.
# BINARY=... measures another binary; by default the static one, if it can be built.
# The benchmark itself is built like the tests: it only waits, and an optimized build
# of it would take another minute.
BENCH ?=
bench-baseline: SAVE = --save
bench bench-baseline: BINARY = $(if $(CAN_STATIC),$(STATIC),target/release/skills-runner)
bench bench-baseline:
	@$(if $(findstring command,$(origin BINARY)),,$(MAKE) --no-print-directory $(if $(CAN_STATIC),static,build))
	@$(CARGO) bench --quiet --profile dev --bench goals -- --binary $(BINARY) $(BENCH) $(SAVE)

CAN_STATIC = $(shell command -v musl-gcc >/dev/null && ls -d "$$(rustc --print sysroot)/lib/rustlib/$(TARGET)" 2>/dev/null)

# Where files are installed, by the GNU conventions; DESTDIR is put before each path.
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
# The program looks for installed skills only here, relative to its own file.
DATADIR = $(BINDIR)/../share/skills-runner
# The names of the example skills. Other skills in that folder belong to the user.
EXAMPLES = $(shell packaging/files skills | tr '\0' '\n' | cut -d / -f 2 | sort -u)

# The binary is built only if it is missing or older than the sources: so
# `sudo make install` after `make` needs no Rust and writes nothing in target/.
# BINARY=target/…-musl/release/skills-runner installs the static one.
target/release/skills-runner: Cargo.toml Cargo.lock $(shell find src skills -type f)
	$(CARGO) build --release --target-dir target
	@touch -c $@

# Man page and completions are generated before anything is installed, so that a
# failing program leaves no incomplete installation. If BINARY is for another processor,
# PROGRAM is the same for this one.
PROGRAM ?= $(BINARY)
install: $(BINARY)
	@case "$(DESTDIR)$(BINDIR)" in /*) ;; *) \
		echo 'PREFIX and DESTDIR must be absolute paths; only bash expands a ~ after =' >&2; exit 2 ;; esac
	@texts=$$(mktemp -d) && trap 'rm -rf "$$texts"' EXIT && \
	for text in man complete-bash complete-zsh complete-fish; do \
		"$(abspath $(PROGRAM))" --generate $$text >"$$texts/$$text" || exit; \
	done && \
	install -D -m 755 "$(abspath $(BINARY))" "$(DESTDIR)$(BINDIR)/skills-runner" && \
	install -D -m 644 "$$texts/man" "$(DESTDIR)$(MANDIR)/man1/skills-runner.1" && \
	install -D -m 644 "$$texts/complete-bash" "$(DESTDIR)$(BASHDIR)/skills-runner" && \
	install -D -m 644 "$$texts/complete-zsh" "$(DESTDIR)$(ZSHDIR)/_skills-runner" && \
	install -D -m 644 "$$texts/complete-fish" "$(DESTDIR)$(FISHDIR)/skills-runner.fish" && \
	unset TAR_OPTIONS && packaging/files skills >"$$texts/names" && \
	tar --null -T "$$texts/names" --transform 's,^skills/,,' -cf "$$texts/skills.tar" && \
	install -d -m 755 "$(DESTDIR)$(DATADIR)" "$(DESTDIR)$(DATADIR)/skills" && \
	tar -xf "$$texts/skills.tar" --no-same-owner -C "$(DESTDIR)$(DATADIR)/skills" && \
	cd "$(DESTDIR)$(DATADIR)/skills" && chmod -R u=rwX,go=rX $(EXAMPLES)
	@echo 'installed $(DESTDIR)$(BINDIR)/skills-runner, and its skills in $(DESTDIR)$(DATADIR)/skills'
	@case ":$$PATH:" in *":$(BINDIR):"*) ;; *) echo '$(BINDIR) is not in PATH: add it in the settings of your shell' ;; esac

uninstall:
	rm -f "$(DESTDIR)$(BINDIR)/skills-runner" "$(DESTDIR)$(MANDIR)/man1/skills-runner.1" \
		"$(DESTDIR)$(BASHDIR)/skills-runner" "$(DESTDIR)$(ZSHDIR)/_skills-runner" \
		"$(DESTDIR)$(FISHDIR)/skills-runner.fish"
	for skill in $(EXAMPLES); do rm -rf "$(DESTDIR)$(DATADIR)/skills/$$skill"; done
	@rmdir "$(DESTDIR)$(DATADIR)/skills" "$(DESTDIR)$(DATADIR)" 2>/dev/null || true

# Everything that can be installed, for both processors, in target/dist: archives, Debian
# packages, wheels and container images, with their checksums. Needs two C compilers,
# mmdebstrap and dpkg-deb (it prints how to get what is missing). The same commit gives the same
# bytes: `make dist-check` builds everything again in another place and compares.
# `make packages-check` (as root) uses the Debian package, the archive and the images for this
# processor in clean roots, and checks that nothing is left.
TARGETS = $(foreach arch,x86_64 aarch64,$(arch)-unknown-linux-musl)
dist: dist-tools target/maturin/bin/maturin
	@for target in $(TARGETS); do $(MAKE) --no-print-directory static TARGET=$$target || exit; done
	@MAKE_CARGO='$(CARGO)' packaging/dist $(TARGETS)

dist-check: dist
	@packaging/check-dist

dist-tools:
	@for target in $(TARGETS); do packaging/with-toolchain $$target packaging/has-tools || exit; done

packages-check:
	@packaging/check-packages

# Everything to publish, from a tag, in target/release-TAG: `make release TAG=v0.2.0`.
# SIGNING_KEY=FILE signs the checksums.
release: override export TAG := $(value TAG)
release:
	@packaging/release "$$TAG"

# The program for aarch64: the integration tests in an emulator of system calls, and those of
# scripts and of the sandbox in an emulated machine. TESTS="sandbox::" selects tests.
TESTS ?=
test-aarch64:
	@tests/aarch64/run $(TESTS)

test-aarch64-machine:
	@tests/aarch64/machine $(TESTS)

# Checks the files of GitHub and GitLab against their schemas. Installs the linter in target/.
target/linter/bin/check-jsonschema:
	python3 -m venv target/linter
	target/linter/bin/pip install --quiet --disable-pip-version-check 'check-jsonschema>=0.30,<1'

workflows: target/linter/bin/check-jsonschema
	$< --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$< --builtin-schema vendor.gitlab-ci --data-transform gitlab-ci .gitlab-ci.yml

# The Python wheels carry the same static binaries: `pip install target/dist/*x86_64.whl`.
# maturin is installed in target/. `make wheel-check` installs the wheel in venvs of its own and
# tests it.
target/maturin/bin/maturin:
	python3 -m venv target/maturin
	target/maturin/bin/pip install --quiet --disable-pip-version-check 'maturin==1.16.0'

wheel: target/maturin/bin/maturin
	@rm -f target/dist/SHA256SUMS target/dist/*$(firstword $(subst -, ,$(TARGET))).whl
	MAKE_CARGO='$(CARGO)' packaging/wheel $(TARGET)

wheel-check: wheel
	python3 packaging/check_wheel.py target/dist/*$(firstword $(subst -, ,$(TARGET))).whl

clean:
	$(CARGO) clean
