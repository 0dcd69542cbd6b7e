//! What was used, on disk: the counters as they are, and as they were at the end
//! of each period.
//!
//! `usage.jsonl` has the counters of the period that is going on. When it ends,
//! the same lines go into `usage-SECONDS.jsonl`, named by when the period began,
//! and never change again. Each line is one component of one tenant:
//!
//! ```json
//! {"tenant":"acme","component":"openai","from":1796018400,"to":1796022000,"requests":12,…}
//! ```
//!
//! `from` and `to` are in seconds since the Unix epoch. Counters are never reset:
//! what a period cost is the difference between its file and the one before, and
//! a lost file costs nothing, since the next one has it in its difference.
//!
//! Every file is written under another name, synced and renamed, so whoever reads
//! one finds it whole, whenever the process was killed. What was counted after
//! the last write is lost then.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::meter::{Counter, Totals, Usage};
use crate::roster::TenantName;

const CURRENT: &str = "usage.jsonl";
const LOCK: &str = "usage.lock";

/// Why counters cannot be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BooksError {
    /// A file or the folder cannot be used.
    #[error("{}: {source}; the folder for usage must be there and writable", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process writes into the folder.
    #[error("{}: another process keeps its counters here; give each a folder of its own", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A file is not as it was written. It is left alone, because counting would
    /// begin at zero without it.
    #[error(
        "{}:{line}: this is no line of usage: {why}; put the file right, or move it away to count from the last period",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// The files of one folder, written by one process at a time.
#[derive(Debug)]
pub struct Books {
    dir: PathBuf,
    /// Seconds, at least one.
    period: u64,
    /// When the period that is going on began; None before anything was written.
    from: Option<u64>,
    /// Locked as long as this is there.
    _lock: File,
}

/// A line, without its counters.
#[derive(Serialize, Deserialize)]
struct Line {
    tenant: String,
    component: String,
    from: u64,
    to: u64,
    #[serde(flatten)]
    counters: serde_json::Map<String, serde_json::Value>,
}

impl Books {
    /// Opens the books in a folder, which is made if it is not there, and reads
    /// the counters. Periods are `period` long, in whole seconds, and begin at
    /// multiples of it since the Unix epoch.
    ///
    /// # Errors
    /// The folder cannot be used, another process uses it, or a file in it is
    /// damaged.
    pub fn open(dir: &Path, period: Duration) -> Result<(Self, Totals), BooksError> {
        fs::create_dir_all(dir).map_err(file_error(dir))?;
        let lock_path = dir.join(LOCK);
        let lock = File::create(&lock_path).map_err(file_error(&lock_path))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => BooksError::InUse { path: dir.to_owned() },
            TryLockError::Error(source) => BooksError::File { path: lock_path.clone(), source },
        })?;
        let mut books = Self { dir: dir.to_owned(), period: period.as_secs().max(1), from: None, _lock: lock };
        let mut totals = Totals::default();
        // The end of a period is written before the beginning of the next one;
        // whoever was killed in between has newer counters in the former.
        if let Some(began) = books.last_closed()? {
            let (_, to) = books.read(&closed_name(began), &mut totals)?;
            books.from = to;
        }
        let (from, _) = books.read(CURRENT, &mut totals)?;
        books.from = books.from.max(from);
        Ok((books, totals))
    }

    /// Writes the counters down. Called every few seconds, and when the process
    /// ends; the call that comes first in a new period ends the one before.
    ///
    /// # Errors
    /// A file cannot be written; the one before is as it was.
    pub fn write(&mut self, totals: &Totals, date: SystemTime) -> Result<(), BooksError> {
        let now = date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let begins = now - now % self.period;
        if let Some(from) = self.from
            // A clock that was set back opens no period again.
            && begins > from
        {
            let name = closed_name(from);
            let to = from.saturating_add(self.period).min(begins);
            // One that is there was ended by a process that was killed then.
            if !self.dir.join(&name).exists() {
                self.replace(&name, &json_lines(totals, from, to))?;
            }
        }
        let from = self.from.map_or(begins, |from| from.max(begins));
        self.replace(CURRENT, &json_lines(totals, from, now.max(from)))?;
        self.from = Some(from);
        Ok(())
    }

    /// Adds a file's counters, and says from when to when its period is. A file
    /// that is not there has none.
    fn read(&self, name: &str, totals: &mut Totals) -> Result<(Option<u64>, Option<u64>), BooksError> {
        let path = self.dir.join(name);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, None)),
            read => read.map_err(file_error(&path))?,
        };
        let mut period = (None, None);
        for (index, line) in text.lines().enumerate() {
            let damaged = |why: String| BooksError::Damaged { path: path.clone(), line: index + 1, why };
            let (line, tenant, usage) = read_line(line).map_err(damaged)?;
            totals.raise(tenant, line.component.into(), usage);
            period = (Some(line.from), Some(line.to));
        }
        Ok(period)
    }

    /// When the last period that has ended began.
    fn last_closed(&self) -> Result<Option<u64>, BooksError> {
        let mut last = None;
        for entry in fs::read_dir(&self.dir).map_err(file_error(&self.dir))? {
            let name = entry.map_err(file_error(&self.dir))?.file_name();
            let began =
                name.to_str().and_then(|name| name.strip_prefix("usage-")?.strip_suffix(".jsonl")?.parse().ok());
            last = last.max(began);
        }
        Ok(last)
    }

    fn replace(&self, name: &str, text: &str) -> Result<(), BooksError> {
        let (path, part) = (self.dir.join(name), self.dir.join(format!("{name}.part")));
        let mut file = File::create(&part).map_err(file_error(&part))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(file_error(&part))?;
        fs::rename(&part, &path).map_err(file_error(&path))?;
        // The new name is in the folder, which has to be synced, too.
        File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(file_error(&self.dir))
    }
}

/// A line, whose it is, and its counters; or what is wrong with it.
fn read_line(text: &str) -> Result<(Line, TenantName, Usage), String> {
    let line: Line = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let tenant: TenantName = line.tenant.parse().map_err(|error| format!("{error}"))?;
    let mut usage = Usage::default();
    for counter in Counter::all() {
        // One that an older version did not count is not there.
        let Some(value) = line.counters.get(counter.name()) else { continue };
        let value = value.as_u64().ok_or_else(|| format!("`{}` is no count", counter.name()))?;
        usage.set(counter, value);
    }
    Ok((line, tenant, usage))
}

/// Lines that another process made by [`json_lines`], as totals.
///
/// # Errors
/// One of them is none; the text says which and why.
pub fn read_json_lines(text: &str) -> Result<Totals, String> {
    let mut totals = Totals::default();
    for (index, line) in text.lines().enumerate() {
        let (line, tenant, usage) = read_line(line).map_err(|why| format!("line {}: {why}", index + 1))?;
        totals.add(tenant, line.component.into(), usage);
    }
    Ok(totals)
}

fn closed_name(began: u64) -> String {
    format!("usage-{began}.jsonl")
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> BooksError + use<> {
    let path = path.to_owned();
    move |source| BooksError::File { path: path.clone(), source }
}

/// Totals for whoever sends bills: a line of JSON for each component of each
/// tenant, for a period in seconds since the Unix epoch.
#[must_use]
pub fn json_lines(totals: &Totals, from: u64, to: u64) -> String {
    let mut text = String::new();
    for (tenant, component, usage) in totals.iter() {
        let counters = usage.iter().map(|(counter, value)| (counter.name().to_owned(), value.into())).collect();
        let tenant = tenant.to_string();
        let line = Line { tenant, component: component.to_string(), from, to, counters };
        // Of texts and numbers there is always JSON.
        if let Ok(line) = serde_json::to_string(&line) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
#[path = "books_tests.rs"]
mod tests;
