#![no_main]
//! See `entries`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| plumb_fuzz::entries::run("openapi", data));
