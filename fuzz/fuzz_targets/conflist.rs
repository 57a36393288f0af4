#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    untaint_fuzz::conflist::check(input);
});
