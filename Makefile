# The few gates; CI runs the same.

# All but TLS, which takes a C compiler and minutes, and changes no code here.
FEATURES := tzdb-bundled,backoff,json,query,form,multipart,stream,charset,http2,system-proxy

.PHONY: test check deep proof bench

# Everything that must hold, in minutes. Needs Rust and, if it cannot install it, redis-server.
test:
	@REDIS_SERVER="$$(sh tests/support/find-redis.sh)" && export REDIS_SERVER && cargo test --features backoff

# Format, lints and docs, with warnings denied; without Redis or reqwest the crate must build too.
check:
	cargo fmt --all --check
	cargo clippy --all-targets --features $(FEATURES) -- -D warnings
	cargo clippy --no-default-features --lib --example not_http -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --features $(FEATURES)

# The long ones: many seeds, many histories, in release.
deep:
	@REDIS_SERVER="$$(sh tests/support/find-redis.sh)" && export REDIS_SERVER && \
	SEEDS=1000 cargo test --release --test simulation -- --nocapture && \
	CASES=3000 cargo test --release --test rust_and_lua_disagree --test windows_exceeded && \
	CREDENTIALS=1000000 cargo test --release --test scopes_left_behind -- --nocapture && \
	FUZZ_MINUTES=10 cargo test --release --test bytes_panic -- --nocapture

# Real processes, a real Redis and a real HTTP upstream: prints one line of figures a run.
proof:
	@REDIS_SERVER="$$(sh tests/support/find-redis.sh)" && export REDIS_SERVER && sh examples/fleet/proof.sh

bench:
	@REDIS_SERVER="$$(sh tests/support/find-redis.sh)" && export REDIS_SERVER && cargo bench
