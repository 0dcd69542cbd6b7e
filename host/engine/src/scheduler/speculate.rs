//! Guessing the next tokens of a run, so that one batch can settle several.
//!
//! Guesses ride along in the batch behind the run's last token. What the run
//! then samples decides: as long as it samples what was guessed, the next row of
//! logits is there already. Each token is sampled from the model's own logits
//! with the run's own sampler, so the distribution of the output does not change,
//! and with a seed not even the draw does.
//!
//! A guess costs a place in the batch. Whether it is worth that is decided by
//! what batches of such sizes were measured to take ([`Pace`]) and how often this
//! run's guesses came true ([`Odds`]).

use std::collections::HashMap;

use super::pace::Pace;
use super::plan::{HEADROOM, Share};
use crate::Token;

/// Tokens that must be the same for what followed them to be a guess. With two,
/// most guesses in prose are wrong.
const GRAM: usize = 3;

/// Looks for what followed the session's last tokens when they stood there before.
///
/// The index grows with the session: the cost of a step does not depend on the
/// session's length.
#[derive(Default)]
pub(super) struct Lookup {
    /// Where each run of [`GRAM`] tokens was last followed by something.
    followed: HashMap<[Token; GRAM], u32>,
    /// Tokens that are taken in.
    taken: usize,
}

impl Lookup {
    /// Up to `most` tokens that may come after `tokens`, which are those of the
    /// call before with others behind them.
    pub(super) fn guess(&mut self, tokens: &[Token], most: usize) -> Vec<Token> {
        // The last run is not followed by anything yet.
        for end in self.taken.max(GRAM)..tokens.len() {
            if let Some(&gram) = tokens.get(..end).and_then(|before| before.last_chunk::<GRAM>()) {
                self.followed.insert(gram, u32::try_from(end).unwrap_or(u32::MAX));
            }
        }
        self.taken = self.taken.max(tokens.len());
        let at = tokens.last_chunk::<GRAM>().and_then(|gram| self.followed.get(gram));
        let from = at.map_or(tokens.len(), |&at| at as usize);
        tokens.get(from..).unwrap_or_default().iter().take(most).copied().collect()
    }
}

/// How often a guessed token came true: an average over the latest ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Odds(f64);

impl Default for Odds {
    fn default() -> Self {
        Self(Self::UNKNOWN)
    }
}

impl Odds {
    /// Every guess comes true.
    pub(super) const CERTAIN: Self = Self(1.0);
    /// What is assumed before the first guess.
    const UNKNOWN: f64 = 0.6;
    /// How much of the average one token makes up.
    const WEIGHT: f64 = 0.08;
    /// How much a guess that was not made moves the average back to what is
    /// assumed, so that a run whose text has changed is tried again.
    const FORGET: f64 = 0.01;

    /// Notes that of `guessed` tokens the first `right` came true. What stands
    /// behind the first wrong one says nothing.
    pub(super) fn saw(&mut self, guessed: usize, right: usize) {
        for _ in 0..right {
            self.0 += Self::WEIGHT * (1.0 - self.0);
        }
        if right < guessed {
            self.0 -= Self::WEIGHT * self.0;
        }
    }

    /// How many of so many guesses come true on average.
    pub(super) fn expected(self, depth: u32) -> f64 {
        (1..=depth).map(|d| self.0.powi(i32::try_from(d).unwrap_or(i32::MAX))).sum()
    }

    pub(super) fn not_tried(&mut self) {
        self.0 += Self::FORGET * (Self::UNKNOWN - self.0);
    }
}

/// The odds of a run's guesses, by where they come from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chances {
    pub(super) lookup: Odds,
    pub(super) model: Odds,
}

impl Chances {
    pub(super) fn of(&mut self, source: Source) -> &mut Odds {
        match source {
            Source::Lookup => &mut self.lookup,
            Source::Model => &mut self.model,
        }
    }
}

/// Where guesses come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Source {
    /// The session's own text.
    #[default]
    Lookup,
    /// The draft model.
    Model,
}

/// Guesses that are part of a batch.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) tokens: Vec<Token>,
    pub(super) source: Source,
}

/// A batch that guesses are added to.
pub(super) struct Guessing {
    /// Its tokens so far.
    batch: u32,
    /// How many of them are of use, on average.
    gives: f64,
    /// How many more fit.
    pub(super) spare: u32,
}

impl Guessing {
    /// Beside `shares`, in a batch and cells of that size.
    pub(super) fn new(cells: u32, batch_tokens: u32, shares: &[Share]) -> Self {
        let batch: u32 = shares.iter().map(|share| share.tokens).sum();
        let headroom = HEADROOM.saturating_mul(u32::try_from(shares.len()).unwrap_or(u32::MAX));
        let spare = cells.saturating_sub(batch).saturating_sub(headroom).min(batch_tokens.saturating_sub(batch));
        Self { batch, gives: f64::from(batch), spare }
    }

    /// How many of `most` guesses are worth their place, where each costs `each`
    /// seconds beside it.
    pub(super) fn depth(&self, pace: &Pace, odds: Odds, most: u32, each: f64) -> u32 {
        worthwhile(pace, odds, (self.batch, self.gives), most.min(self.spare), each)
    }

    /// Notes that so many are added.
    pub(super) fn takes(&mut self, depth: u32, odds: &mut Odds) {
        if depth == 0 {
            odds.not_tried();
        }
        self.batch += depth;
        self.spare -= depth.min(self.spare);
        self.gives += odds.expected(depth);
    }
}

/// What a guess has to be worth: tokens a second must grow by this factor, or
/// noise would decide.
const WORTH: f64 = 1.03;

/// How many of `guessed` tokens to add to a batch of so many tokens that gives so
/// many new ones, where each costs `each` seconds beside its place.
///
/// With odds a for each token, d of them give a + a² + … + a^d more. The number
/// with the most tokens a second is taken; 0 while nothing is measured, and where
/// the batch is so full that another token costs as much as it gives.
fn worthwhile(pace: &Pace, odds: Odds, (batch, gives): (u32, f64), guessed: u32, each: f64) -> u32 {
    let Some(plain) = pace.cost(batch).map(|cost| gives / cost) else { return 0 };
    let (mut best, mut depth, mut more, mut chance) = (plain * WORTH, 0, 0.0, 1.0);
    for d in 1..=guessed {
        chance *= odds.0;
        more += chance;
        let Some(cost) = pace.cost(batch + d) else { break };
        let rate = (gives + more) / (cost + each * f64::from(d));
        if rate > best {
            (best, depth) = (rate, d);
        }
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_followed_before_is_guessed() {
        let mut lookup = Lookup::default();
        let mut text: Vec<Token> = vec![1, 2, 3, 4, 5, 6, 9, 1, 2];
        assert!(lookup.guess(&text, 8).is_empty());
        text.push(3);
        assert_eq!(lookup.guess(&text, 3), [4, 5, 6]);
        text.extend([7, 1, 2, 3]);
        assert_eq!(lookup.guess(&text, 2), [7, 1], "the latest occurrence counts");
        assert!(lookup.guess(&[1, 2], 2).is_empty(), "too short to say anything");
    }

    #[test]
    fn a_text_that_repeats_one_token_guesses_it() {
        let mut lookup = Lookup::default();
        assert_eq!(lookup.guess(&[5; 10], 4), [5], "what is known ends where the text ends");
    }

    fn pace(cost: impl Fn(u32) -> f64) -> Pace {
        let mut pace = Pace::default();
        for size in 1..40_u32 {
            pace.measured(size as usize, Duration::from_secs_f64(cost(size)));
        }
        pace
    }

    #[test]
    fn cheap_tokens_are_guessed_deep_and_dear_ones_not_at_all() {
        let flat = pace(|_| 0.01);
        let linear = pace(|n| 0.01 * f64::from(n));
        let odds = Odds(0.8);
        assert_eq!(worthwhile(&flat, odds, (1, 1.0), 8, 0.0), 8);
        assert_eq!(worthwhile(&linear, odds, (1, 1.0), 8, 0.0), 0, "8 tokens cost 8 steps");
        let half = pace(|n| 0.01 * (1.0 + 0.3 * f64::from(n - 1)));
        let depth = worthwhile(&half, odds, (1, 1.0), 8, 0.0);
        assert!((1..8).contains(&depth), "{depth}");
        assert!(worthwhile(&half, odds, (1, 1.0), 8, 0.004) < depth, "those of a model cost more");
        assert_eq!(worthwhile(&Pace::default(), odds, (1, 1.0), 8, 0.0), 0, "nothing is measured");
    }

    #[test]
    fn odds_follow_what_came_true_and_recover() {
        let (flat, mut odds) = (pace(|n| 0.01 + 0.002 * f64::from(n)), Odds::default());
        for _ in 0..100 {
            odds.saw(4, 0);
        }
        assert_eq!(worthwhile(&flat, odds, (1, 1.0), 8, 0.0), 0);
        let tried = (0..500).any(|_| {
            odds.not_tried();
            worthwhile(&flat, odds, (1, 1.0), 8, 0.0) > 0
        });
        assert!(tried, "a run that was unlucky is tried again");
        for _ in 0..100 {
            odds.saw(4, 4);
        }
        assert!(odds.0 > 0.95);
    }
}
