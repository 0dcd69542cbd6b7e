//! That nothing is left over of what comes and goes.

use std::time::Duration;

use nala_e2e::soak::Soak;

#[test]
fn what_comes_and_goes_leaves_nothing_behind() {
    let soak = Soak::start();
    // Caches fill, and threads start.
    soak.load(Duration::from_secs(10));
    let before = soak.rest();
    let counts = soak.load(Duration::from_secs(25));
    let after = soak.rest();
    for (what, (done, failed)) in &counts {
        assert!(*done > 0 && *failed == 0, "{what}: {counts:?}\n{}", soak.host.log());
    }
    assert!(after.files <= before.files, "{before:?} {after:?}");
    assert!(after.threads <= before.threads, "{before:?} {after:?}");
    // What an allocator keeps differs by some pages from time to time.
    assert!(after.anonymous < before.anonymous + (32 << 20), "{before:?} {after:?}");
}
