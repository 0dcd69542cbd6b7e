//! What comes again with each minute is used up by hostile guests, for their tenant alone.

use nala_e2e::hostile::{Site, Terms};

fn site(limits: &str) -> Site {
    Site::start(&Terms { cpu: "200ms", wall: "20s", limits, args: &[] })
}

/// Asks as `bad` until it is refused, and then as `good`.
fn used_up(limits: &str, path: &str, code: &str) {
    let site = site(limits);
    let refused = (0..20).map(|_| site.ask(&site.bad, path)).find(|answer| answer.status == 429);
    let refused = refused.unwrap_or_else(|| panic!("{limits} never ends"));
    assert_eq!(refused.code(), code, "{refused:?}");
    let usage = site.ask(&site.bad, "/.well-known/nala/usage");
    assert_eq!(usage.status, 200, "how much it was is still told: {usage:?}");
    site.good_completes();
    site.until_empty(&[]);
}

#[test]
fn each_limit_of_a_minute_has_its_answer() {
    used_up("cpu_per_minute = \"500ms\"", "/spin/now", "cpu_per_minute");
    used_up("tokens_in_per_minute = 600", "/kv-hog/save", "tokens_in_per_minute");
    used_up("requests_per_minute = 5", "/hello", "requests_per_minute");
}
