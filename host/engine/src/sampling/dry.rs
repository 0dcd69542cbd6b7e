//! Making it less likely to repeat whole phrases ("don't repeat yourself").
//!
//! The rule is llama.cpp's (`llama_sampler_dry`): for each earlier place of the
//! window that ends like the text ends, the token that followed there is
//! penalised by how long the two are alike.

use std::collections::{HashMap, VecDeque};

use crate::Token;
use crate::options::Dry;

/// What the run said lately.
pub(super) struct Repetitions {
    window: usize,
    /// Latest first.
    latest: VecDeque<Token>,
    /// For each place, how many tokens before it are as those at the end.
    alike: Vec<usize>,
}

impl Repetitions {
    pub(super) fn new(dry: Option<&Dry>) -> Self {
        let window = dry.map_or(0, |dry| dry.window as usize);
        Self { window, latest: VecDeque::new(), alike: Vec::new() }
    }

    pub(super) fn push(&mut self, token: Token) {
        if self.window > 0 {
            self.latest.truncate(self.window - 1);
            self.latest.push_front(token);
        }
    }

    /// Subtracts from the logits of those that would go on with a repetition.
    pub(super) fn apply(&mut self, dry: &Dry, logits: &mut [f32]) {
        let allowed = dry.allowed_length as usize;
        // Nothing reaches over the latest breaker.
        let broken = self.latest.iter().position(|token| dry.breakers.contains(token));
        let longest = broken.unwrap_or(self.latest.len());
        if longest < allowed {
            return;
        }
        self.measure();
        let mut followers: HashMap<Token, usize> = HashMap::new();
        for (place, &length) in self.alike.iter().enumerate().skip(1) {
            let length = length.min(longest);
            // What came after this place is what would prolong the repetition.
            if let Some(&next) = self.latest.get(place - 1)
                && length >= allowed
            {
                let known = followers.entry(next).or_default();
                *known = length.max(*known);
            }
        }
        for (token, length) in followers {
            if let Some(logit) = logits.get_mut(token as usize) {
                let penalty = dry.multiplier * dry.base.powi(i32::try_from(length - allowed).unwrap_or(i32::MAX));
                // Beyond the numbers it is forbidden as far as a number can say.
                *logit -= penalty.min(f32::MAX / 4.0);
            }
        }
    }

    /// The Z function of the tokens, latest first: linear in the window.
    fn measure(&mut self) {
        let n = self.latest.len();
        self.alike.clear();
        self.alike.resize(n, 0);
        let (mut left, mut right) = (0, 0);
        for place in 1..n {
            let known = self.alike.get(place - left).copied().unwrap_or(0);
            let mut length = if place < right { known.min(right - place) } else { 0 };
            while place + length < n && self.latest.get(length) == self.latest.get(place + length) {
                length += 1;
            }
            if place + length > right {
                (left, right) = (place, place + length);
            }
            if let Some(slot) = self.alike.get_mut(place) {
                *slot = length;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dry(allowed_length: u32, breakers: &[Token]) -> Dry {
        Dry { multiplier: 1.0, base: 2.0, allowed_length, window: 100, breakers: breakers.to_vec() }
    }

    fn penalties(dry: &Dry, said: &[Token]) -> Vec<f32> {
        let mut repetitions = Repetitions::new(Some(dry));
        for &token in said {
            repetitions.push(token);
        }
        let mut logits = vec![0.0; 8];
        repetitions.apply(dry, &mut logits);
        logits.into_iter().map(|l| 0.0 - l).collect()
    }

    #[test]
    fn who_would_go_on_with_a_phrase_pays_by_its_length() {
        // llama.cpp's own example: a b c c b c y a b c.
        let said = [1, 2, 3, 3, 2, 3, 4, 1, 2, 3];
        // "a b c" went on with c, "b c" with y, and "c" with b.
        assert_eq!(penalties(&dry(1, &[]), &said), [0.0, 0.0, 1.0, 4.0, 2.0, 0.0, 0.0, 0.0]);
        assert_eq!(penalties(&dry(3, &[]), &said), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(penalties(&dry(4, &[]), &said), [0.0; 8]);
        // After a breaker only what came since counts.
        assert_eq!(penalties(&dry(1, &[1]), &said), [0.0, 0.0, 1.0, 2.0, 2.0, 0.0, 0.0, 0.0]);
        assert_eq!(penalties(&dry(1, &[3]), &said), [0.0; 8]);
    }

    proptest! {
        #[test]
        fn lengths_are_those_of_a_plain_search(said in proptest::collection::vec(0..3u32, 0..60)) {
            let mut repetitions = Repetitions::new(Some(&dry(1, &[])));
            for &token in &said {
                repetitions.push(token);
            }
            repetitions.measure();
            let latest: Vec<Token> = said.iter().rev().copied().collect();
            for place in 1..latest.len() {
                let plain = latest[place..].iter().zip(&latest).take_while(|(a, b)| a == b).count();
                prop_assert_eq!(repetitions.alike[place], plain, "at {}", place);
            }
        }
    }
}
