//! Logs, on standard error.

use std::io::{self, Write};
use std::str::FromStr;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use crate::args::LogArgs;
use crate::console::Console;

/// Starts logging in the form of `console`.
pub(crate) fn start(args: &LogArgs, console: Console) {
    // The level was checked when the command line was read.
    let filter = EnvFilter::try_new(&args.level).unwrap_or_else(|_| EnvFilter::new("info"));
    let filter = match args.level.contains(PROTOCOL) {
        true => filter,
        false => QUIET.parse().into_iter().fold(filter, EnvFilter::add_directive),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // It would tell of a failed write on standard error, where a failed
        // write is a panic: in the middle of whichever request was logged.
        .log_internal_errors(false)
        .with_writer(|| Lossy(io::stderr()));
    let started = match console {
        Console::Json => builder.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init(),
        Console::Terminal => builder.with_ansi(true).with_target(false).try_init(),
        Console::Plain => builder.with_ansi(false).with_target(false).try_init(),
    };
    if let Err(error) = started {
        console.warn(&format!("logs cannot be started: {error}"));
    }
}

/// A writer that never fails: what cannot be written is dropped. The disk that
/// takes the log may be full and its reader gone; requests go on all the same.
struct Lossy<W>(W);

impl<W: Write> Write for Lossy<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _dropped = self.0.write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _dropped = self.0.flush();
        Ok(())
    }
}

/// What speaks the Model Context Protocol to servers elsewhere, and tells of each connection
/// as it goes; what comes of it, the host tells itself.
const PROTOCOL: &str = "rmcp";
const QUIET: &str = "rmcp=off";

/// Checks `--log-level`. [`EnvFilter`] takes any word for the name of a module,
/// so that a misspelt level would silence the log without a word.
///
/// # Errors
/// What is wrong, and the levels.
pub(crate) fn level(text: &str) -> Result<String, String> {
    const LEVELS: &str = "the levels are off, error, warn, info, debug and trace; a directive is written as in \
                          info,nala_http=debug";
    // Directives about spans and fields have commas of their own.
    let plain = !text.contains(['[', '{']);
    let wrong = |part: &&str| {
        let (module, level) = part.split_once('=').unwrap_or(("", part));
        let level = level.trim();
        // Nothing at all is a level, too: error.
        module.trim().contains(char::is_whitespace) || level.is_empty() || LevelFilter::from_str(level).is_err()
    };
    match text.split(',').find(wrong) {
        Some(part) if plain => return Err(format!("{part:?} is no level and no directive; {LEVELS}")),
        _ => {}
    }
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| format!("{error}; {LEVELS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `/dev/full`, or a pipe that nobody reads.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::Error::from(io::ErrorKind::BrokenPipe))
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_is_no_failure() {
        let mut log = Lossy(Full);
        log.write_all(b"a line\n").unwrap();
        log.flush().unwrap();
    }

    #[test]
    fn a_level_that_is_none_is_refused_with_the_levels() {
        for text in ["info", "WARN", "off", "info,nala_http=debug", "nala_http[request]=trace"] {
            assert_eq!(level(text).as_deref(), Ok(text));
        }
        for text in ["garbage", "", "info,", "nala_http", "nala_http=loud", "info nala_http=debug"] {
            let error = level(text).unwrap_err();
            assert!(error.contains("error, warn, info, debug and trace"), "{text:?}: {error}");
        }
    }
}
