//! Logs, on standard error.

use tracing_subscriber::EnvFilter;

use crate::args::LogArgs;
use crate::console::Console;

/// Starts logging in the form of `console`.
pub(crate) fn start(args: &LogArgs, console: Console) {
    let (filter, wrong) = match EnvFilter::try_new(&args.level) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error)),
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match console {
        Console::Json => builder.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init(),
        Console::Terminal => builder.with_ansi(true).with_target(false).try_init(),
        Console::Plain => builder.with_ansi(false).with_target(false).try_init(),
    };
    if let Err(error) = started {
        console.warn(&format!("logs cannot be started: {error}"));
    }
    if let Some(error) = wrong {
        console.warn(&format!(
            "--log-level {:?} is not understood ({error}); using info. Examples: debug, info,nala_http=debug",
            args.level
        ));
    }
}
