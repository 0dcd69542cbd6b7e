//! The fake backend passes the suite that every backend must pass.

use nala_engine::conformance;
use nala_engine::fake::Fake;

#[test]
fn fake() {
    let mut fake = Fake::default();
    fake.limits.kv_cells = 512;
    fake.limits.sequence_tokens = 256;
    fake.limits.sequences = 8;
    conformance::run(&|| fake.load());
}
