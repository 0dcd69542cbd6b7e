//! How long a token of a batch takes, so that no step lasts too long.
//!
//! A step cannot be interrupted: whoever hangs up, cancels or asks for something
//! waits for its end, and so does every stream that shares the batch.

use std::time::Duration;

/// Batches of fewer tokens say little about what one more would cost.
const TELLING: u32 = 8;
/// The least that a prompt is given in a step, however slow the machine is.
const LEAST: u32 = 16;
/// What a prompt is given while nothing is known.
const FIRST: u32 = 64;
/// How much of the estimate the latest batch makes up.
const WEIGHT: f64 = 0.3;

/// Measures batches.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Seconds a token, once known.
    token: Option<f64>,
}

impl Pace {
    pub(super) fn measured(&mut self, tokens: usize, took: Duration) {
        let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        if tokens < TELLING {
            return;
        }
        let now = took.as_secs_f64() / f64::from(tokens);
        self.token = Some(self.token.map_or(now, |before| before + WEIGHT * (now - before)));
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
}
