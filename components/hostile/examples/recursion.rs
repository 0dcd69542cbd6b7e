//! Calls itself without end: a function (`/stack`), or the component by HTTP (`/http`).

use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, answer, fetch};

fn handle(asked: Asked, out: ResponseOutparam) {
    if asked.way == "http" {
        let own = asked.request.authority().unwrap_or_default();
        let path = asked.request.path_with_query().unwrap_or_default();
        return answer(out, &format!("{:?}", fetch(&own, &path)));
    }
    answer(out, &deeper(1).to_string());
}

/// No loop can be made of it: what each call has in its frame is used after the next.
#[inline(never)]
fn deeper(n: u64) -> u64 {
    if std::hint::black_box(n) == 0 {
        return 0;
    }
    let frame = std::hint::black_box([n; 32]);
    let below = deeper(std::hint::black_box(n + 1));
    frame.iter().fold(below, |sum, part| sum.wrapping_add(*part))
}

hostile::guest!(handle);
