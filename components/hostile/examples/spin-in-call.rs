//! Keeps the host busy by calls without end, where its own code hardly runs: small ones
//! (`/small`), large ones (`/large`), long ones (`/long`: texts as large as are taken to
//! be tokenised), and one that waits for an hour (`/wait`).

use hostile::wasi::clocks::monotonic_clock;
use hostile::wasi::http::types::{Fields, ResponseOutparam};
use hostile::wasi::random::random::get_random_bytes;
use hostile::{Asked, answer};
use nala_sdk::llm::Model;

const HOUR: u64 = 3_600_000_000_000;

fn handle(asked: Asked, out: ResponseOutparam) {
    match asked.way.as_str() {
        "small" => loop {
            std::hint::black_box(Fields::new());
        },
        "large" => loop {
            std::hint::black_box(get_random_bytes(60_000));
        },
        "long" => long(asked.number(1 << 20)),
        _ => monotonic_clock::subscribe_duration(HOUR).block(),
    }
    answer(out, "not stopped");
}

fn long(bytes: usize) {
    let text: String = (0..bytes).map(|n| char::from(b'a' + (n * n % 26) as u8)).collect();
    let Ok(model) = Model::open_default() else { return };
    while model.encode(&text).is_ok() {}
}

hostile::guest!(handle);
