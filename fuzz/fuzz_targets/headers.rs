//! Answers that make the reader panic. Needs nightly and cargo-fuzz; beside it there is `tests/bytes_panic.rs`, which
//! needs neither.
//!
//! ```sh
//! mkdir -p corpus/headers && cargo +nightly fuzz run headers corpus/headers seeds/headers
//! ```
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tollgate::signal::check_bytes(bytes));
