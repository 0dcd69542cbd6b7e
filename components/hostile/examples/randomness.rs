//! Asks for more randomness than there should be in one call: so many bytes as the query
//! says.

use hostile::wasi::http::types::ResponseOutparam;
use hostile::wasi::random::{insecure, insecure_seed, random};
use hostile::{Asked, answer};

fn handle(asked: Asked, out: ResponseOutparam) {
    let bytes = asked.number(1 << 30) as u64;
    let got = match asked.way.as_str() {
        "insecure" => insecure::get_insecure_random_bytes(bytes).len(),
        "seeds" => {
            let seeds: std::collections::BTreeSet<_> = (0..1000).map(|_| insecure_seed::insecure_seed()).collect();
            seeds.len()
        }
        _ => random::get_random_bytes(bytes).len(),
    };
    answer(out, &got.to_string());
}

hostile::guest!(handle);
