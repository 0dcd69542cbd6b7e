//! Tries to tell time finely: the smallest step of the clocks that it sees, in
//! nanoseconds, and how much earlier than it should a wait can end.

use hostile::wasi::clocks::{monotonic_clock, wall_clock};
use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, answer};

const LOOKS: usize = 200_000;

fn handle(_asked: Asked, out: ResponseOutparam) {
    let monotonic = smallest_step(monotonic_clock::now);
    let wall = smallest_step(|| {
        let now = wall_clock::now();
        now.seconds * 1_000_000_000 + u64::from(now.nanoseconds)
    });
    let begin = monotonic_clock::now();
    monotonic_clock::subscribe_duration(5_000_000).block();
    let waited = monotonic_clock::now() - begin;
    answer(out, &format!("monotonic {monotonic} wall {wall} waited {waited}"));
}

fn smallest_step(now: impl Fn() -> u64) -> u64 {
    let (mut last, mut smallest) = (now(), u64::MAX);
    for _ in 0..LOOKS {
        let next = now();
        if next > last {
            smallest = smallest.min(next - last);
        }
        last = next;
    }
    smallest
}

hostile::guest!(handle);
