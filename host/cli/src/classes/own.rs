//! A class's process: how it differs from the host that has started it.

use std::num::NonZeroUsize;
use std::time::Duration;

use nala_http::HttpConfig;

use crate::args::ServeArgs;
use crate::console::Console;
use crate::tenancy::{Doors, Opened};

/// Longer than the front takes for anything that it waits for itself.
const PATIENT: Duration = Duration::from_secs(3600);

/// Where several processes write to one terminal, none moves bars on it.
pub(crate) fn console(args: &ServeArgs, console: Console) -> Console {
    match (&args.class, console) {
        (Some(_), Console::Terminal) => Console::Plain,
        (_, console) => console,
    }
}

/// The settings that are in force: those of the line, and in a class's process what the
/// class says besides.
pub(crate) fn settings(args: &ServeArgs, opened: &Opened) -> ServeArgs {
    let mut args = args.clone();
    let Doors::Link { class, .. } = &opened.doors else { return args };
    if let Some(threads) = class.threads.and_then(|threads| NonZeroUsize::try_from(threads).ok()) {
        args.engine.threads = Some(threads);
    }
    if let Some(cells) = class.kv_cells {
        args.engine.kv_cells = cells.get();
    }
    args.models.model_memory = class.model_memory.or(args.models.model_memory);
    // Compiled code is run unchecked by whoever finds it: what this process writes must
    // be of use to no other.
    match &opened.state {
        Some(state) if !args.code.no_cache => args.code.cache_dir = Some(state.join("components")),
        _ => args.code.no_cache = true,
    }
    args
}

/// The limits of a server behind the front, which has applied its own to clients: what
/// they bound is not bounded twice, lest this server takes a slow client of the front
/// for a slow front.
pub(crate) fn behind(config: HttpConfig) -> HttpConfig {
    HttpConfig {
        // HTTP/2 counts some bytes more for each header (RFC 9113, section 6.5.2), and the
        // front adds one.
        max_header_bytes: config.max_header_bytes.saturating_mul(4),
        header_timeout: PATIENT,
        body_timeout: PATIENT,
        body_rate: 0,
        idle_timeout: PATIENT,
        write_timeout: PATIENT,
        // Nothing comes any more once it is told to end.
        lame_duck: Duration::ZERO,
        ..config
    }
}
