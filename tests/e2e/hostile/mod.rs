//! Tenants and clients that mean harm, and neighbours that do not notice.
//!
//! The guests are those of `components/hostile`; what neighbours notice in milliseconds is
//! measured by `benches/neighbours`.

mod apart;
mod crowds;
mod frames;
mod guests;
mod minutes;
mod responses;
mod rounds;
mod wire;

use nala_e2e::hostile::{Site, Terms};

/// Nothing of a minute is used up while others look on.
const NO_MINUTES: &str = "requests_per_minute = \"unlimited\"\ncpu_per_minute = \"unlimited\"\n\
                          tokens_in_per_minute = \"unlimited\"\ntokens_out_per_minute = \"unlimited\"\n\
                          log_bytes_per_minute = \"unlimited\"";

fn site() -> Site {
    site_with("200ms", "3s")
}

/// With so much CPU time and wall time for a request to a hostile guest.
fn site_with(cpu: &str, wall: &str) -> Site {
    Site::start(&Terms { cpu, wall, limits: NO_MINUTES, args: &[] })
}
