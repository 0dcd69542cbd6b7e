//! The converter of GBNF: no panic, and what it writes is Lark.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use nala_engine::fuzzing::Constraints;

fuzz_target!(|data: &[u8]| {
    static SHARED: OnceLock<Constraints> = OnceLock::new();
    SHARED.get_or_init(Constraints::new).convert(data);
});
