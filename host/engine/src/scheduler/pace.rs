//! What batches cost, so that no step lasts too long and no guess costs more than
//! it gives.
//!
//! A step cannot be interrupted: whoever hangs up, cancels or asks for something
//! waits for its end, and so does every stream that shares the batch.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::time::Duration;

/// Batches of fewer tokens say little about what one more of a prompt would cost.
const TELLING: u32 = 8;
/// The least that a prompt is given in a step, however slow the machine is. Every other
/// step that is kept to it has twice as much: of batches that are all alike nobody knows
/// what more would cost.
const LEAST: u32 = 16;
/// The same beside others, where a token alone is no long step.
const LEAST_BESIDE: u32 = 4;
/// What a prompt is given while nothing is known.
const FIRST: u32 = 64;
/// How much of the estimate the latest batch makes up.
const WEIGHT: f64 = 0.3;
/// How far batches must be from their average, as a part of it, to tell what one more
/// token costs,
const UNLIKE: f64 = 0.2;
/// and the least that it is taken to cost, as a part of the average of all.
const CHEAPEST: f64 = 0.25;
/// The part of the time for a step that its tokens have at the least.
const ALWAYS: f64 = 0.25;
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
    /// What batches with prompts take.
    prompts: Line,
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
            self.prompts.measured(f64::from(tokens), took);
        }
    }

    /// How many tokens of prompts a batch may have so that its step takes about so long,
    /// or, where any batch takes longer than that, twice as long as that: with smaller ones
    /// prompts would take for ever, and steps hardly less.
    pub(super) fn tokens_in(&self, time: Duration) -> u32 {
        let Some((batch, token)) = self.prompts.costs() else { return FIRST };
        if token <= 0.0 {
            return u32::MAX;
        }
        let time = time.as_secs_f64();
        let left = if batch < time { (time - batch).max(time * ALWAYS) } else { batch };
        let tokens = (left / token) as u32;
        match tokens > LEAST {
            true => tokens,
            false if self.batches.is_multiple_of(2) => LEAST,
            false => 2 * LEAST,
        }
    }

    /// As [`Pace::tokens_in`], beside others who wait for the step: where small batches are
    /// known to keep to the time, no more than those.
    pub(super) fn tokens_beside(&self, time: Duration) -> u32 {
        let tokens = self.tokens_in(time);
        let is_slow = self.cost(1).is_none_or(|one| one > time.as_secs_f64() / 2.0);
        if is_slow { tokens } else { tokens.min(self.tokens_within(time).max(LEAST_BESIDE)) }
    }

    /// How many tokens a batch may have so that it takes no longer than that: at least one.
    pub(super) fn tokens_within(&self, time: Duration) -> u32 {
        let time = time.as_secs_f64();
        if let Some((batch, token)) = self.prompts.costs()
            && token > 0.0
        {
            let tokens = ((time - batch) / token) as u32;
            if tokens > LEAST {
                return tokens;
            }
        }
        let fits = |tokens: &u32| self.cost(*tokens).is_none_or(|cost| cost <= time);
        (1..=LEAST).rev().find(fits).unwrap_or(1)
    }

    /// What a batch of so many tokens takes at the least, in seconds: as
    /// [`Pace::cost`], or what the largest takes that was measured.
    pub(super) fn least(&self, tokens: u32) -> Option<f64> {
        let (largest, _) = self.known(..).next_back()?;
        self.cost(tokens.min(largest))
    }

    /// What a batch of so many tokens takes, in seconds: measured, or on the line
    /// between the nearest sizes that were. None while nothing is known or time
    /// stands still.
    pub(super) fn cost(&self, tokens: u32) -> Option<f64> {
        let cost = match (self.known(..=tokens).next_back(), self.known(tokens..).next()) {
            (Some((low, from)), Some((high, to))) if high > low => {
                from + (to - from) * f64::from(tokens - low) / f64::from(high - low)
            }
            (_, Some((_, seconds))) => seconds,
            // Larger than all: each further token costs what one of a prompt does,
            // or as much as those before.
            (Some((low, seconds)), None) => {
                let token = self.prompts.costs().map_or(seconds / f64::from(low), |(_, token)| token);
                seconds + f64::from(tokens - low) * token
            }
            (None, None) => return None,
        };
        (cost > 0.0).then_some(cost)
    }

    /// The sizes that came lately, with their seconds.
    fn known(&self, sizes: impl RangeBounds<u32>) -> impl DoubleEndedIterator<Item = (u32, f64)> {
        let oldest = self.batches.saturating_sub(MEMORY);
        let lately = self.sizes.range(sizes).filter(move |(_, known)| known.at >= oldest);
        lately.map(|(&size, known)| (size, known.seconds))
    }
}

/// The line that comes closest to what was measured lately: what a batch takes by itself,
/// and what each token adds. Threads that wait for each other, or weights that must be read
/// once, make the first large.
#[derive(Debug, Default)]
struct Line {
    /// Averages of tokens and seconds, of the square of the one and of their product. None:
    /// nothing was measured.
    means: Option<[f64; 4]>,
}

impl Line {
    fn measured(&mut self, tokens: f64, seconds: f64) {
        let now = [tokens, seconds, tokens * tokens, tokens * seconds];
        self.means = Some(self.means.map_or(now, |mut means| {
            means.iter_mut().zip(now).for_each(|(mean, now)| *mean = toward(*mean, now));
            means
        }));
    }

    /// Seconds of a batch by itself, and of each token. None while nothing is known.
    fn costs(&self) -> Option<(f64, f64)> {
        let [tokens, seconds, squares, products] = self.means?;
        let average = seconds / tokens;
        let variance = squares - tokens * tokens;
        // From batches that are nearly alike nothing follows but the average.
        if variance < (UNLIKE * tokens).powi(2) {
            return Some((0.0, average));
        }
        let token = ((products - tokens * seconds) / variance).clamp(CHEAPEST * average, average);
        Some((seconds - token * tokens, token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_into_a_time_is_known_from_small_batches_and_large_ones() {
        let ms = Duration::from_millis;
        let mut pace = Pace::default();
        assert_eq!(pace.tokens_within(ms(25)), LEAST, "nothing is known");
        for _ in 0..10 {
            pace.measured(1, ms(10));
            pace.measured(16, ms(70));
        }
        assert_eq!(pace.tokens_within(ms(31)), 6, "four milliseconds a token beyond the first");
        assert_eq!(pace.tokens_within(ms(5)), 1);
        let mut fast = Pace::default();
        for _ in 0..50 {
            fast.measured(32, ms(4));
            fast.measured(128, ms(10));
        }
        assert!((200..=400).contains(&fast.tokens_within(ms(25))), "{}", fast.tokens_within(ms(25)));
    }

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
        for _ in 0..50 {
            pace.measured(512, Duration::from_secs(1000));
        }
        let tokens = [0, 1].map(|_| {
            pace.measured(1, Duration::from_secs(1));
            pace.tokens_in(Duration::from_millis(300))
        });
        assert_eq!(tokens.iter().sum::<u32>(), 3 * LEAST, "{tokens:?}");
    }

    /// Gives batches as many tokens as are said to fit, where each takes `batch` and `token`
    /// for each of its tokens, and tells how many those are in the end.
    fn settle(pace: &mut Pace, time: Duration, batch: Duration, token: Duration) -> u32 {
        let mut all = Vec::new();
        for _ in 0..200 {
            let tokens = pace.tokens_in(time).min(2048);
            pace.measured(tokens as usize, batch + token * tokens);
            all.push(tokens);
        }
        all[150..].iter().sum::<u32>() / 50
    }

    #[test]
    fn what_a_batch_takes_by_itself_does_not_make_it_small() {
        let mut pace = Pace::default();
        let ms = Duration::from_millis;
        let fits = settle(&mut pace, ms(50), Duration::ZERO, ms(1));
        assert!((45..=50).contains(&fits), "{fits}");
        // Suddenly somebody else has the machine: threads wait for each other.
        let fits = settle(&mut pace, ms(50), ms(700), ms(1));
        assert!(fits > 200, "as long as a batch takes anyway, or nearly: {fits}");
        let fits = settle(&mut pace, ms(50), Duration::ZERO, ms(1));
        assert!((45..=50).contains(&fits), "{fits}");
        let fits = settle(&mut pace, ms(50), Duration::ZERO, ms(20));
        assert!(fits <= 24, "each token costs: {fits}");
    }

    #[test]
    fn costs_lie_between_what_was_measured() {
        let mut pace = Pace::default();
        assert_eq!(pace.cost(1), None);
        pace.measured(1, Duration::from_millis(10));
        assert_eq!(pace.cost(3), Some(0.03), "as dear as those before");
        pace.measured(5, Duration::from_millis(18));
        assert!((pace.cost(3).unwrap() - 0.014).abs() < 1e-9);
        assert!((pace.least(3).unwrap() - 0.014).abs() < 1e-9);
        assert!((pace.least(9).unwrap() - 0.018).abs() < 1e-9);
        pace.measured(512, Duration::from_millis(512));
        assert!((pace.cost(7).unwrap() - 0.020).abs() < 1e-9, "further tokens cost what a prompt's do");
        for _ in 0..MEMORY {
            pace.measured(1, Duration::from_millis(10));
        }
        assert!((pace.cost(5).unwrap() - 0.014).abs() < 1e-9, "a size that never came again is forgotten");
    }
}
