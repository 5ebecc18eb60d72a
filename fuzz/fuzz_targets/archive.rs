#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| skills_runner_fuzz::archive::check(data));
