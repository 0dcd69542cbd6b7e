//! Making what was said lately less likely.
//!
//! The formulas are llama.cpp's (`llama_sampler_penalties`): the repeat penalty
//! divides positive logits and multiplies negative ones, then the frequency
//! penalty counts each occurrence and the presence penalty the first.

use std::collections::HashMap;

use crate::Token;
use crate::options::Sampling;

/// Whether the penalties change anything.
pub(super) fn apply_to(params: &Sampling) -> bool {
    params.penalty_window > 0
        && (params.repeat_penalty != 1.0 || params.frequency_penalty != 0.0 || params.presence_penalty != 0.0)
}

/// How often each token occurs in the window.
#[derive(Default)]
pub(super) struct Counts(HashMap<Token, u32>);

impl Counts {
    pub(super) fn apply(&mut self, params: &Sampling, history: &[Token], logits: &mut [f32]) {
        self.0.clear();
        let start = history.len().saturating_sub(params.penalty_window as usize);
        for &token in history.get(start..).unwrap_or_default() {
            *self.0.entry(token).or_default() += 1;
        }
        for (&token, &count) in &self.0 {
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

    fn penalised(params: &Sampling, history: &[Token]) -> Vec<f32> {
        let mut logits = vec![2.0, -2.0, 1.0];
        Counts::default().apply(params, history, &mut logits);
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
        assert!(!apply_to(&Sampling { penalty_window: 0, ..repeat.clone() }));
        assert!(apply_to(&repeat));
    }
}
