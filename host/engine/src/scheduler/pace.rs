//! What batches cost, so that no step lasts too long and no guess costs more than
//! it gives.
//!
//! A step cannot be interrupted: whoever hangs up, cancels or asks for something
//! waits for its end, and so does every stream that shares the batch.

use std::collections::BTreeMap;
use std::time::Duration;

/// Batches of fewer tokens say little about what one more of a prompt would cost.
const TELLING: u32 = 8;
/// The least that a prompt is given in a step, however slow the machine is.
const LEAST: u32 = 16;
/// What a prompt is given while nothing is known.
const FIRST: u32 = 64;
/// How much of the estimate the latest batch makes up.
const WEIGHT: f64 = 0.3;
/// The largest batch whose cost is kept by itself.
const LARGEST: u32 = 64;
/// After so many batches a size that did not come again is forgotten: it may have
/// been measured at a bad moment, and what is not known is estimated again.
const MEMORY: u64 = 4096;

/// An estimate, with what the latest batch says.
pub(super) fn toward(before: f64, now: f64) -> f64 {
    before + WEIGHT * (now - before)
}

/// Measures batches.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Seconds a token of a prompt, once known.
    token: Option<f64>,
    /// Seconds of small batches by their size.
    sizes: BTreeMap<u32, Measured>,
    /// Batches so far.
    batches: u64,
}

#[derive(Debug, Clone, Copy)]
struct Measured {
    seconds: f64,
    /// The latest batch of this size.
    at: u64,
}

impl Pace {
    /// Notes what a batch took.
    pub(super) fn measured(&mut self, tokens: usize, took: Duration) {
        let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        let took = took.as_secs_f64();
        self.batches += 1;
        if (1..=LARGEST).contains(&tokens) {
            let before = self.sizes.get(&tokens).filter(|known| self.batches - known.at < MEMORY);
            let seconds = before.map_or(took, |known| toward(known.seconds, took));
            self.sizes.insert(tokens, Measured { seconds, at: self.batches });
        }
        if tokens >= TELLING {
            let now = took / f64::from(tokens);
            self.token = Some(self.token.map_or(now, |before| toward(before, now)));
        }
    }

    /// How many tokens of prompts a batch may have so that its step takes about
    /// so long.
    pub(super) fn tokens_in(&self, time: Duration) -> u32 {
        match self.token {
            Some(token) if token > 0.0 => ((time.as_secs_f64() / token) as u32).max(LEAST),
            Some(_) => u32::MAX,
            None => FIRST,
        }
    }

    /// What a batch of so many tokens takes, in seconds: measured, or on the line
    /// between the nearest sizes that were. None while nothing is known or time
    /// stands still.
    pub(super) fn cost(&self, tokens: u32) -> Option<f64> {
        let oldest = self.batches.saturating_sub(MEMORY);
        let point = |(&size, known): (&u32, &Measured)| (known.at >= oldest).then_some((size, known.seconds));
        let below = self.sizes.range(..=tokens).rev().find_map(point);
        let above = self.sizes.range(tokens..).find_map(point);
        let cost = match (below, above) {
            (Some((low, from)), Some((high, to))) if high > low => {
                from + (to - from) * f64::from(tokens - low) / f64::from(high - low)
            }
            (_, Some((_, seconds))) => seconds,
            // Larger than all: each further token costs what one of a prompt does,
            // or as much as those before.
            (Some((low, seconds)), None) => {
                seconds + f64::from(tokens - low) * self.token.unwrap_or(seconds / f64::from(low))
            }
            (None, None) => return None,
        };
        (cost > 0.0).then_some(cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_kept_short_and_never_empty() {
        let mut pace = Pace::default();
        assert_eq!(pace.tokens_in(Duration::from_millis(300)), FIRST, "nothing is known");
        pace.measured(512, Duration::from_millis(5120));
        assert_eq!(pace.tokens_in(Duration::from_millis(301)), 30);
        pace.measured(1, Duration::from_secs(5));
        assert_eq!(pace.tokens_in(Duration::from_millis(301)), 30, "a lone token says nothing");
        for _ in 0..50 {
            pace.measured(32, Duration::from_millis(32));
        }
        assert!((295..=301).contains(&pace.tokens_in(Duration::from_millis(300))));
        pace.measured(512, Duration::from_secs(1000));
        assert_eq!(pace.tokens_in(Duration::from_millis(300)), LEAST);
    }

    #[test]
    fn costs_lie_between_what_was_measured() {
        let mut pace = Pace::default();
        assert_eq!(pace.cost(1), None);
        pace.measured(1, Duration::from_millis(10));
        assert_eq!(pace.cost(3), Some(0.03), "as dear as those before");
        pace.measured(5, Duration::from_millis(18));
        assert!((pace.cost(3).unwrap() - 0.014).abs() < 1e-9);
        pace.measured(512, Duration::from_millis(512));
        assert!((pace.cost(7).unwrap() - 0.020).abs() < 1e-9, "further tokens cost what a prompt's do");
        for _ in 0..MEMORY {
            pace.measured(1, Duration::from_millis(10));
        }
        assert!((pace.cost(5).unwrap() - 0.014).abs() < 1e-9, "a size that never came again is forgotten");
    }
}
