# `make` alone lists what there is. What takes part in `make test` here is what `.ci/run` runs there.

.DEFAULT_GOAL := help
.PHONY: help run test installed compiled tidy check check-bench spec spec-ghost spec-php spec-wordpress spec-blog spec-bench spec-seeing spec-cluster bench-tools fuzz bench seeds bench-attacks bench-bytes bench-crowd bench-ghost bench-ghost-figures bench-http3 bench-load bench-paas bench-reload bench-restart bench-store bench-wordpress clients conformance docs optimised release deb wordpress-plugin tools hugo pebble ghost wordpress php cluster seeing deny

CARGO ?= cargo
# What `make run` serves, and where.
SOURCE ?= examples/blog
LISTEN ?= 127.0.0.1:8080
# What `make bench` measures: of run, static, tls, crowd, load, blog, http3 and ghost all that can be measured here.
SECTIONS ?=
# For `make bench`: a newer nginx than the one that is installed, where a Ghost listens, a Caddy for HTTP/3.
export NGINX_NEW GHOST CADDY_BIN
# Seconds that `make fuzz` gives each target.
SECONDS_EACH ?= 60

# `make run` compiles for less than half as long as a release does: without the allocator, and optimised where it matters.
TRY_BINARY = $(or $(CARGO_TARGET_DIR),target)/try/seawall
BINARY = $(or $(CARGO_TARGET_DIR),target)/release/seawall
# What is packed, and measured beside others.
OPTIMISED = $(or $(CARGO_TARGET_DIR),target)/optimised/seawall
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
PACKAGE = seawall-$(VERSION)-$(shell uname -m)-linux

help: ## this list
	@echo 'Seawall. The targets:'
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "  make %-19s %s\n", $$1, $$2 }'

run: tools ## serve the example blog on http://127.0.0.1:8080; SOURCE=... LISTEN=... for another source or address
	$(CARGO) build --profile try --locked --package seawall --no-default-features
	@echo
	@echo '  Look at   http://$(LISTEN)/'
	@echo '  See why   curl -sD - -o /dev/null http://$(LISTEN)/ | grep -i cache     twice: a MISS, then a HIT'
	@if [ '$(SOURCE)' = examples/blog ]; then echo '  Write     change a file in examples/blog/posts: it is live a moment later'; fi
	@echo '  End       Ctrl-C'
	@exec '$(TRY_BINARY)' serve '$(SOURCE)' --listen '$(LISTEN)'

# Clippy's driver is a compiler: what it has linted need not be compiled again for the tests. `cargo clippy` would check all dependencies once more.
LINTED = RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS='-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__'

test: tidy ## everything that must hold: formatting, lints, licences, dependencies, all tests; installs what it needs
	$(MAKE) --jobs=2 compiled installed
	$(LINTED) $(CARGO) test --locked --workspace

# Parts of `test`, side by side: one waits for the processor, the other one for the network.
compiled: tools
	$(LINTED) $(CARGO) test --locked --workspace --no-run

installed:
	$(MAKE) --jobs=1 hugo pebble ghost wordpress php cluster bench-tools seeing

check: tidy ## formatting, lints, licences and unused dependencies, without the tests
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# What can be judged without compiling.
tidy: tools deny check-bench
	.ci/unused-dependencies
	$(CARGO) fmt --all --check
	$(CARGO) deny --log-level error check licenses bans sources

spec: tools ## the promises, from socket to socket: crates/seawall/tests/spec
	$(CARGO) test --locked --package seawall --test spec

spec-ghost: tools ghost ## a real Ghost behind Seawall: all tests of crates/seawall/tests/ghost, with the long ones and a browser; installs what it needs
	crates/seawall/tests/ghost/bring-up --browser
	SEAWALL_GHOST_LONG=1 $(CARGO) test --locked --package seawall --test ghost

spec-php: tools php ## a real php-fpm: all tests of crates/origins/tests/php_fpm, with an upload of 1 GB and a download of 2 GB
	SEAWALL_PHP_LONG=1 $(CARGO) test --locked --package origins --test php_fpm

spec-wordpress: tools wordpress ## a real WordPress with Seawall: all tests of crates/seawall/tests/wordpress, with the long ones and a browser; installs what it needs
	crates/seawall/tests/wordpress/bring-up --browser
	SEAWALL_WORDPRESS_LONG=1 $(CARGO) test --locked --package seawall --test wordpress

spec-blog: tools ghost ## the embedded blog in a browser, and its pages judged by axe, the checker of the W3C and Lighthouse: crates/seawall/tests/blog and blog_looks; installs what they need
	crates/seawall/tests/ghost/bring-up --browser
	crates/seawall/tests/blog_looks/bring-up
	SEAWALL_BLOG_LONG=1 $(CARGO) test --locked --package seawall --test blog
	SEAWALL_BLOG_LONG=1 $(CARGO) test --locked --package seawall --test blog_looks -- --test-threads=1

spec-bench: tools bench-tools ghost wordpress ## the load tester, judged: all tests of crates/load/tests and crates/seawall/tests/bench, with the long ones and a browser: an hour
	crates/seawall/tests/ghost/bring-up --browser
	crates/seawall/tests/wordpress/bring-up --browser
	SEAWALL_BENCH_LONG=1 $(CARGO) test --release --locked --package load --test judged
	SEAWALL_BENCH_LONG=1 $(CARGO) test --release --locked --package seawall --test bench

spec-seeing: tools seeing ## what Seawall shows of itself, read by Prometheus and others: all tests of crates/seawall/tests/seeing, with the long ones: more than an hour; installs what it needs
	crates/seawall/tests/blog_looks/bring-up
	crates/seawall/tests/seeing/bring-up --long
	SEAWALL_SEEING_LONG=1 $(CARGO) test --locked --package seawall --test seeing
	SEAWALL_SEEING_LONG=1 $(CARGO) test --locked --package seawall --test spec what_is_shown_is_what_the_access_log_says
	SEAWALL_SEEING_LONG=1 $(CARGO) test --locked --package admin --test dashboard

spec-cluster: tools cluster ## several machines that act as one, over a real Valkey: all tests of crates/seawall/tests/cluster, with the long ones: a quarter of an hour; needs root
	SEAWALL_CLUSTER_LONG=1 $(CARGO) test --locked --package seawall --test cluster -- --test-threads=1

fuzz: tools ## fuzz every target for SECONDS_EACH seconds (60); needs the nightly compiler
	@$(CARGO) +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal
	@$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install cargo-fuzz --locked
	fuzz/run $(SECONDS_EACH)

bench: tools ## measure beside nginx, h2o, HAProxy and Varnish, and write BENCHMARKING.md: 40 quiet minutes; NGINX_NEW=FILE, GHOST=URL
	deploy/optimised
	SEAWALL_BIN='$(abspath $(OPTIMISED))' bench/all --sections '$(SECTIONS)'

seeds: tools ghost wordpress ## what bloggers published, measured again: Ghost, WordPress, a static site, a blog; writes doc/proof.md: 30 quiet minutes
	deploy/optimised
	SEAWALL_BIN='$(abspath $(OPTIMISED))' bench/seeds

bench-attacks: tools ## known attacks on a server of its own, while an honest client reads on
	$(CARGO) build --release --locked --package seawall
	SEAWALL_BIN='$(abspath $(BINARY))' bench/attacks

bench-bytes: tools ## bytes on the wire beside nginx; with a Ghost's front page: see bench/bytes --help
	$(CARGO) build --release --locked --package seawall
	SEAWALL_BIN='$(abspath $(BINARY))' bench/bytes

bench-crowd: tools ## 1,000 clients at once on one cold page
	deploy/optimised
	SEAWALL_BIN='$(abspath $(OPTIMISED))' bench/crowd

bench-ghost: tools ## beside nginx, in front of a Ghost that runs already; needs its address: see bench/ghost --help
	deploy/optimised
	SEAWALL_BIN='$(abspath $(OPTIMISED))' bench/ghost

bench-ghost-figures: tools ghost ## ab and wrk on a Ghost alone and behind Seawall, and 2,000 visits in a minute; starts its own Ghost
	deploy/optimised
	SEAWALL_BIN='$(abspath $(OPTIMISED))' bench/ghost-figures

bench-wordpress: tools wordpress ## a WordPress behind php-fpm, beside nginx with fastcgi_cache; starts its own WordPress
	deploy/optimised
	SEAWALL_BIN='$(abspath $(OPTIMISED))' bench/wordpress

bench-paas: tools ## a folder behind a platform's router, beside nginx: ab -c 100 -n 5000
	deploy/optimised
	SEAWALL_BIN='$(abspath $(OPTIMISED))' bench/paas

bench-http3: tools ## hits over HTTP/3 beside Caddy, which it builds; needs Go
	deploy/optimised
	SEAWALL_BIN='$(abspath $(OPTIMISED))' bench/http3

bench-load: tools ## the load tester beside wrk, ab and h2load: what a request costs it, and whether what it says is true
	deploy/optimised
	SEAWALL_BIN='$(abspath $(OPTIMISED))' bench/load

bench-restart: tools ## 100,000 stored pages, kill -9, and a start without the origin
	$(CARGO) build --release --locked --package seawall
	SEAWALL_BIN='$(abspath $(BINARY))' bench/restart

bench-store: tools ## the memory tier's hit ratio beside an LRU's, and what many cores cost each other on one page
	$(CARGO) run --release --locked --package store --example hit_ratio
	$(CARGO) run --release --locked --package store --example contention

bench-reload: tools ## reloads and changes of certificates under load: no request fails, no connection is lost
	$(CARGO) build --release --locked --package seawall
	SEAWALL_BIN='$(abspath $(BINARY))' bench/reload

clients: tools ## curl, nghttp, Go, Node, OpenSSL, Chromium, h2spec and testssl.sh over TLS; writes doc/clients.md
	$(CARGO) build --release --locked --package seawall
	SEAWALL_BIN='$(abspath $(BINARY))' bench/clients

conformance: tools ## the public HTTP cache test suite, beside six other caches; writes doc/conformance.md; needs Node.js
	$(CARGO) build --release --locked --package seawall
	SEAWALL_BIN='$(abspath $(BINARY))' bench/conformance

docs: tools wordpress ## take the pictures and transcripts in doc anew, and the walk through a crowd; needs chromium and wrk
	$(CARGO) build --release --locked --package seawall
	SEAWALL_BIN='$(abspath $(BINARY))' doc/screenshot
	SEAWALL_BIN='$(abspath $(BINARY))' doc/transcripts
	SEAWALL_BIN='$(abspath $(BINARY))' doc/walk

optimised: tools ## the binary that is packed and measured, target/optimised/seawall: built, exercised, and built again by what was counted: half an hour
	deploy/optimised

release: test ## test, then pack the binary into target/dist
	deploy/optimised
	rm -rf 'target/dist/$(PACKAGE)'
	mkdir -p 'target/dist/$(PACKAGE)'
	cp '$(OPTIMISED)' 'target/dist/$(PACKAGE)/'
	strip --strip-unneeded 'target/dist/$(PACKAGE)/seawall'
	deploy/documentation 'target/dist/$(PACKAGE)' '$(VERSION)'
	'$(OPTIMISED)' manual >'target/dist/$(PACKAGE)/seawall.1'
	tar -C target/dist -czf 'target/dist/$(PACKAGE).tar.gz' '$(PACKAGE)'
	cd target/dist && sha256sum '$(PACKAGE).tar.gz' | tee '$(PACKAGE).tar.gz.sha256'

deb: tools ## a package for Debian and its kin, into target/dist; needs dpkg-dev
	deploy/optimised
	deploy/debian/build '$(OPTIMISED)' '$(VERSION)' target/dist

wordpress-plugin: ## the plugin for WordPress, as a zip file to upload, into target/dist; needs zip
	integrations/wordpress/package target/dist

# The compiler comes from rustup: a distribution's is too old. The C compiler is for the cryptography (aws-lc) and the allocator (jemalloc).
tools:
	@command -v $(CARGO) >/dev/null || { \
	  echo 'Rust is missing: install it from https://rustup.rs, then open a new shell (or: . "$$HOME/.cargo/env").' >&2; exit 1; }
	@command -v cc >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then as=; else as=sudo; fi; \
	  command -v apt-get >/dev/null || { echo 'A C compiler is missing: install gcc or clang.' >&2; exit 1; }; \
	  $$as apt-get update -q && $$as apt-get install -q -y --no-install-recommends gcc libc6-dev; }

# A part of `test`: generates the site of crates/seawall/tests/generated_site.
hugo:
	@command -v hugo >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then as=; else as=sudo; fi; \
	  command -v apt-get >/dev/null || { echo 'Hugo is missing: https://gohugo.io/installation/' >&2; exit 1; }; \
	  $$as apt-get update -q && $$as apt-get install -q -y --no-install-recommends hugo; }

# A part of `test`: a certificate authority that is asked for certificates (crates/acme/tests/pebble).
pebble:
	@command -v pebble pebble-challtestsrv >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then as=; else as=sudo; fi; \
	  command -v apt-get >/dev/null || { echo 'Pebble is missing: https://github.com/letsencrypt/pebble' >&2; exit 1; }; \
	  $$as apt-get update -q && $$as apt-get install -q -y --no-install-recommends pebble; }

# A part of `test`: a Ghost with a blog in it (crates/seawall/tests/ghost). The first time, it is installed from npm: five minutes on two cores.
ghost:
	@crates/seawall/tests/ghost/bring-up

# A part of `test`: a WordPress with a blog in it (crates/seawall/tests/wordpress), its PHP and its MariaDB, all from Debian packages: a minute or two.
wordpress:
	@crates/seawall/tests/wordpress/bring-up

# A part of `test`: the servers that crates/seawall/tests/bench loads. Caddy is in Debian; the others that are missing are installed, too.
bench-tools:
	@crates/seawall/tests/bench/bring-up

# A part of `test`: Prometheus and the other programs of crates/seawall/tests/seeing.
seeing:
	@crates/seawall/tests/seeing/bring-up

# A part of `test`: what runs the scripts of crates/origins/tests/php_fpm. Debian would start a server of its own with it, which nothing here needs.
php:
	@PATH="$$PATH:/usr/sbin"; command -v php-fpm >/dev/null || ls /usr/sbin/php-fpm* >/dev/null 2>&1 || { \
	  if [ "$$(id -u)" = 0 ]; then as=; else as=sudo; fi; \
	  command -v apt-get >/dev/null || { echo 'php-fpm is missing: https://www.php.net/manual/install.fpm.php' >&2; exit 1; }; \
	  $$as apt-get update -q && $$as apt-get install -q -y --no-install-recommends php-fpm; }

# A part of `test`: the Valkey and Redis servers and the bucket between machines (crates/cluster/tests/servers, crates/seawall/tests/cluster).
cluster:
	@crates/cluster/tests/servers/bring-up

# A part of `tidy`: what writes BENCHMARKING.md. Nothing else here needs Python, so that its absence is no failure.
check-bench:
	@if command -v python3 >/dev/null; then python3 -B -m unittest discover --quiet --start-directory bench/lib --pattern 'test_*.py'; \
	else echo 'python3 is missing: bench/report is not tested'; fi

# A part of `tidy`. The first time, cargo-deny is compiled: two minutes, as it is not optimized.
deny: tools
	@$(CARGO) fmt --version >/dev/null 2>&1 && $(CARGO) clippy --version >/dev/null 2>&1 || rustup component add rustfmt clippy
	@$(CARGO) deny --version >/dev/null 2>&1 || CARGO_PROFILE_DEV_DEBUG=0 $(CARGO) install cargo-deny --locked --debug
