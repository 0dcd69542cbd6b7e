//! Computes without end: at once, or behind the head of its response (`/late`).

use hostile::wasi::http::types::{Fields, ResponseOutparam};
use hostile::{Asked, begin, spin, write};

fn handle(asked: Asked, out: ResponseOutparam) {
    if asked.way == "late" {
        let body = begin(out, 200, Fields::new());
        let stream = body.as_ref().and_then(|body| body.write().ok());
        let _gone = stream.as_ref().map(|stream| write(stream, b"begun"));
        spin();
    }
    spin();
}

hostile::guest!(handle);
