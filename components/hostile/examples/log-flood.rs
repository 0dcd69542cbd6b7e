//! Writes ten mebibytes into the log: in lines (`/lines`), in one line (`/line`), or
//! lines that look like another's (`/forged`).

use std::io::Write;

use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, answer};

const BYTES: usize = 10 << 20;

fn handle(asked: Asked, out: ResponseOutparam) {
    match asked.way.as_str() {
        "lines" => flood(&[&[b'l'; 127][..], b"\n"].concat()),
        "line" => flood(&[b'x'; 4096]),
        _ => {
            let forged = "quiet\r2026-01-01T00:00:00Z ERROR a forged line\x1b[2J\u{202e}\u{0}\n";
            let _full = std::io::stderr().write_all(forged.as_bytes());
        }
    }
    answer(out, "flooded");
}

fn flood(part: &[u8]) {
    let mut out = std::io::stdout();
    for _ in 0..BYTES / part.len() {
        if out.write_all(part).is_err() {
            return;
        }
    }
    let _full = out.flush();
}

hostile::guest!(handle);
