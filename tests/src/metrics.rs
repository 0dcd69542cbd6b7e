//! The host's counters, read as a monitoring system reads them.

use std::time::{Duration, Instant};

/// One scrape.
#[derive(Debug, Clone)]
pub struct Scrape(String);

impl Scrape {
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The sum of a series over its labels; 0 where there is none yet.
    pub fn sum(&self, name: &str) -> f64 {
        self.lines(name).map(|(_, value)| value).sum()
    }

    /// The value of a series whose labels contain `label`.
    pub fn with(&self, name: &str, label: &str) -> f64 {
        self.lines(name).filter(|(labels, _)| labels.contains(label)).map(|(_, value)| value).sum()
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.0
    }

    pub fn has(&self, name: &str) -> bool {
        self.lines(name).next().is_some()
    }

    fn lines<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.lines().filter_map(move |line| {
            let rest = line.strip_prefix(name)?;
            let (labels, value) = rest.rsplit_once(' ')?;
            let exact = labels.is_empty() || labels.starts_with('{');
            exact.then(|| (labels, value.parse().unwrap_or(f64::NAN)))
        })
    }
}

/// Looks until something holds.
pub fn eventually(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + within;
    while !holds() {
        assert!(Instant::now() < end, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
