//! Answers without end: as fast as it can (`/fast`), or a byte every 50 ms (`/slow`).

use hostile::wasi::clocks::monotonic_clock;
use hostile::wasi::http::types::{Fields, ResponseOutparam};
use hostile::{Asked, begin, write};

fn handle(asked: Asked, out: ResponseOutparam) {
    let Some(body) = begin(out, 200, Fields::new()) else { return };
    let Ok(stream) = body.write() else { return };
    if asked.way == "slow" {
        while write(&stream, b".").is_ok() {
            monotonic_clock::subscribe_duration(50_000_000).block();
        }
        return;
    }
    let part = [b'e'; 4096];
    while write(&stream, &part).is_ok() {}
}

hostile::guest!(handle);
