//! Stop texts and UTF-8 over token borders: the same text, however it is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| nala_engine::fuzzing::text(data));
