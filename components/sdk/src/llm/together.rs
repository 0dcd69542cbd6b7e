//! Several runs at the same time.

use std::collections::VecDeque;

use super::{Chunk, Error, Generation};
use wasip2::io::poll::poll;

/// Runs that are generated at the same time, as one iterator over what comes of any
/// of them, each chunk with its run's place in the list. What holds for the end of a
/// [`Generation`] holds for each of them; the iterator ends with the last.
///
/// ```
/// use nala_sdk::llm::{Error, GenerateOptions, Session, Together};
///
/// /// Goes on from one beginning in several ways.
/// fn branches(root: &Session, n: usize) -> Result<Vec<String>, Error> {
///     let run = |_| root.fork()?.generate(&GenerateOptions::greedy(32));
///     let runs: Vec<_> = (0..n).map(run).collect::<Result<_, Error>>()?;
///     let mut texts = vec![String::new(); n];
///     for (index, chunk) in Together::new(runs) {
///         if let Some(text) = texts.get_mut(index) {
///             text.push_str(&chunk?.text);
///         }
///     }
///     Ok(texts)
/// }
/// ```
#[derive(Debug)]
pub struct Together {
    /// None: it has ended.
    runs: Vec<Option<Generation>>,
    /// Places of those that have something.
    ready: VecDeque<usize>,
}

impl Together {
    /// Follows these runs.
    #[must_use]
    pub fn new(runs: Vec<Generation>) -> Self {
        Self { runs: runs.into_iter().map(Some).collect(), ready: VecDeque::new() }
    }

    /// Takes a run off the list and drops it. Its place stays empty: nothing more
    /// comes of it.
    pub fn remove(&mut self, place: usize) {
        if let Some(slot) = self.runs.get_mut(place) {
            *slot = None;
        }
    }

    /// Puts a run at a place, in place of what was there.
    pub fn put(&mut self, place: usize, run: Generation) {
        if let Some(slot) = self.runs.get_mut(place) {
            *slot = Some(run);
        }
    }

    /// Waits until a run has something. False: all have ended.
    fn wait(&mut self) -> bool {
        let going = self.runs.iter().enumerate().filter_map(|(place, run)| Some((place, run.as_ref()?)));
        let (places, waits): (Vec<_>, Vec<_>) = going.map(|(place, run)| (place, run.run.subscribe())).unzip();
        if places.is_empty() {
            return false;
        }
        let ready = poll(&waits.iter().collect::<Vec<_>>());
        let place = |index: u32| places.get(usize::try_from(index).ok()?).copied();
        self.ready.extend(ready.into_iter().filter_map(place));
        true
    }
}

impl Iterator for Together {
    type Item = (usize, Result<Chunk, Error>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            while let Some(place) = self.ready.pop_front() {
                let Some(slot) = self.runs.get_mut(place) else { continue };
                match slot.as_mut().and_then(Iterator::next) {
                    Some(item) => return Some((place, item)),
                    None => *slot = None,
                }
            }
            if !self.wait() {
                return None;
            }
        }
    }
}
