//! Making what was said lately less likely.
//!
//! The formulas are llama.cpp's (`llama_sampler_penalties`): the repeat penalty
//! divides positive logits and multiplies negative ones, then the frequency
//! penalty counts each occurrence and the presence penalty the first.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use crate::Token;
use crate::options::Sampling;

/// What the run said lately, and how often. Kept from token to token: a step
/// costs as much as the window has distinct tokens.
pub(super) struct Recent {
    /// 0: nothing is penalised.
    window: usize,
    order: VecDeque<Token>,
    counts: HashMap<Token, u32>,
}

impl Recent {
    pub(super) fn new(params: &Sampling) -> Self {
        let changes = params.repeat_penalty != 1.0 || params.frequency_penalty != 0.0 || params.presence_penalty != 0.0;
        let window = if changes { params.penalty_window as usize } else { 0 };
        Self { window, order: VecDeque::new(), counts: HashMap::new() }
    }

    /// Whether the penalties change anything.
    pub(super) fn penalises(&self) -> bool {
        !self.order.is_empty()
    }

    pub(super) fn push(&mut self, token: Token) {
        if self.window == 0 {
            return;
        }
        if self.order.len() == self.window
            && let Some(oldest) = self.order.pop_front()
            && let Entry::Occupied(mut count) = self.counts.entry(oldest)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.order.push_back(token);
        *self.counts.entry(token).or_default() += 1;
    }

    pub(super) fn apply(&self, params: &Sampling, logits: &mut [f32]) {
        for (&token, &count) in &self.counts {
            let Some(logit) = logits.get_mut(token as usize) else { continue };
            if *logit > 0.0 {
                *logit /= params.repeat_penalty;
            } else {
                *logit *= params.repeat_penalty;
            }
            *logit -= count as f32 * params.frequency_penalty + params.presence_penalty;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn penalised(params: &Sampling, said: &[Token]) -> Vec<f32> {
        let mut logits = vec![2.0, -2.0, 1.0];
        let mut recent = Recent::new(params);
        for &token in said {
            recent.push(token);
        }
        if recent.penalises() {
            recent.apply(params, &mut logits);
        }
        logits
    }

    #[test]
    fn formulas() {
        let repeat = Sampling { repeat_penalty: 2.0, penalty_window: 10, ..Sampling::GREEDY };
        assert_eq!(penalised(&repeat, &[0, 1, 1]), [1.0, -4.0, 1.0]);
        let counted =
            Sampling { frequency_penalty: 0.5, presence_penalty: 0.25, penalty_window: 10, ..Sampling::GREEDY };
        assert_eq!(penalised(&counted, &[0, 0, 2, 7]), [0.75, -2.0, 0.25]);
    }

    #[test]
    fn only_the_window_counts() {
        let repeat = Sampling { repeat_penalty: 2.0, penalty_window: 1, ..Sampling::GREEDY };
        assert_eq!(penalised(&repeat, &[0, 2]), [2.0, -2.0, 0.5]);
        let two = Sampling { frequency_penalty: 1.0, penalty_window: 2, ..Sampling::GREEDY };
        assert_eq!(penalised(&two, &[0, 0, 2, 0]), [1.0, -2.0, 0.0]);
        assert_eq!(penalised(&Sampling { penalty_window: 0, ..repeat }, &[0]), [2.0, -2.0, 1.0]);
    }
}
