//! Sources of every kind, and a walk through what they allow: no panic, no limit
//! that does not hold, and the same answers after a step back.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use nala_engine::fuzzing::Constraints;

fuzz_target!(|data: &[u8]| {
    static SHARED: OnceLock<Constraints> = OnceLock::new();
    SHARED.get_or_init(Constraints::new).walk(data);
});
