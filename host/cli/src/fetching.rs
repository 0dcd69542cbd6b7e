//! Fetching components, and showing people how far it is.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use nala_fetch::{Error, Fetched, Fetcher, Network, Settings, Wanted, Was};
use nala_wasm::MAX_COMPONENT_BYTES;

use crate::args::FetchArgs;
use crate::console::Console;
use crate::models::mebibytes;

/// Time for one component: 256 MiB at half a megabyte a second.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

/// Who fetches with the settings of the command line.
///
/// # Errors
/// No folder for what is fetched can be named.
pub(crate) fn fetcher(args: &FetchArgs) -> anyhow::Result<Fetcher> {
    let own = || directories::ProjectDirs::from("", "", "nala").map(|dirs| dirs.cache_dir().join("fetched"));
    let folder = args.fetch_dir.clone().or_else(own);
    let folder: PathBuf = folder.context("there is no home for what is fetched: name a folder by --fetch-dir")?;
    Ok(Fetcher::new(Settings {
        folder,
        max_bytes: MAX_COMPONENT_BYTES,
        limit: LIMIT,
        network: if args.offline { Network::Unused } else { Network::Used },
        plain_text: args.plain_http.clone(),
    }))
}

/// Fetches what people know by the name `what`.
///
/// # Errors
/// It cannot be had; the error says what to do.
pub(crate) fn fetch(fetcher: &Fetcher, wanted: &Wanted<'_>, what: &str, console: Console) -> Result<Fetched, Error> {
    let mut moving = Moving::new(format!("Fetching {what}"), console);
    let fetched = fetcher.fetch(wanted, &mut |done, total| moving.reached(done, total));
    moving.end();
    let fetched = fetched?;
    if fetched.was == Was::Elsewhere {
        let name = fetched.pinned.as_ref().map_or_else(|| fetched.component.to_string(), ToString::to_string);
        // What is pinned is called by what it is.
        let which = if name == what { String::new() } else { format!(", which is {name}") };
        console.say(&format!("Fetched {what}{which}"));
    }
    Ok(fetched)
}

/// A bar that appears once bytes move.
pub(crate) struct Moving {
    text: String,
    console: Console,
    bar: Option<ProgressBar>,
}

impl Moving {
    pub(crate) fn new(text: String, console: Console) -> Self {
        Self { text, console, bar: None }
    }

    /// So many bytes have moved, of so many, where that is known.
    pub(crate) fn reached(&mut self, done: u64, total: Option<u64>) {
        let bar = self.bar.get_or_insert_with(|| {
            if self.console != Console::Terminal {
                let size = total.map(|total| format!(" ({})", mebibytes(total))).unwrap_or_default();
                self.console.say(&format!("{}{size}", self.text));
            }
            let style = match total {
                Some(_) => "{msg} [{bar:30}] {bytes}/{total_bytes}, {bytes_per_sec}",
                None => "{spinner} {msg} {bytes}, {bytes_per_sec}",
            };
            let bar = self.console.bar(total.unwrap_or_default(), style);
            bar.set_message(self.text.clone());
            bar
        });
        bar.set_position(done);
    }

    pub(crate) fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
