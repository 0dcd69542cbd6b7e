//! Asks others by HTTP ten thousand times, or as often as the query says.

use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, answer, fetch, tally};

fn handle(asked: Asked, out: ResponseOutparam) {
    let asks = (0..asked.number(10_000)).map(|_| match fetch("127.0.0.1:9", "/") {
        Ok(status) => format!("answered {status}"),
        Err(why) => why,
    });
    answer(out, &tally(asks));
}

hostile::guest!(handle);
