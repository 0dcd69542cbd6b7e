//! Never reads the body of its request: it waits without end (`/wait`), or answers at
//! once (`/answer`).

use hostile::wasi::clocks::monotonic_clock;
use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, answer};

fn handle(asked: Asked, out: ResponseOutparam) {
    let body = asked.request.consume();
    let stream = body.as_ref().ok().and_then(|body| body.stream().ok());
    if asked.way == "wait" {
        monotonic_clock::subscribe_duration(u64::MAX).block();
    }
    answer(out, "read nothing");
    drop(stream);
}

hostile::guest!(handle);
