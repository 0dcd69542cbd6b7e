//! Computes a little less than a guest may at a time, waits for nothing, and does so
//! again, without end: about four milliseconds, or as many thousands of additions as the
//! query says.

use hostile::wasi::clocks::monotonic_clock;
use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, compute};

fn handle(asked: Asked, _out: ResponseOutparam) {
    let additions = asked.number(3000) as u64 * 1000;
    loop {
        compute(additions);
        monotonic_clock::subscribe_duration(0).block();
    }
}

hostile::guest!(handle);
