//! The tokens still in question, and their truncation.
//!
//! A vocabulary is 50,000 to 250,000 entries, so nothing here sorts all of it:
//! the k largest are selected first (linear time) and only those are sorted.

use crate::Token;

type Candidate = (Token, f32);

/// Tokens with their logits. Of `items`, the first `sorted` are the largest, in
/// descending order; the others follow in any order.
#[derive(Default)]
pub(super) struct Candidates {
    items: Vec<Candidate>,
    sorted: usize,
}

fn descending(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

impl Candidates {
    /// Takes the `k` largest finite logits, or all for 0.
    pub(super) fn fill(&mut self, logits: &[f32], k: usize) {
        self.items.clear();
        self.sorted = 0;
        let finite = (0..).zip(logits.iter().copied()).filter(|(_, l)| l.is_finite());
        self.items.extend(finite);
        if k > 0 && k < self.items.len() {
            self.sort_first(k);
            self.items.truncate(k);
        }
    }

    /// All, in descending order.
    pub(super) fn sorted(&mut self) -> impl Iterator<Item = Candidate> {
        self.sort_first(self.items.len());
        self.items.iter().copied()
    }

    /// Keeps the smallest set of the most likely whose probabilities sum up to
    /// `p`, at least one.
    pub(super) fn keep_top_p(&mut self, p: f32) {
        if p >= 1.0 || self.items.is_empty() {
            return;
        }
        let max = self.max();
        let total: f64 = self.items.iter().map(|c| weight(c.1, max)).sum();
        let wanted = f64::from(p) * total;
        let mut n = 64;
        loop {
            self.sort_first(n);
            let mut sum = 0.0;
            let reached = self.items.iter().take(self.sorted).position(|c| {
                sum += weight(c.1, max);
                sum >= wanted
            });
            if let Some(last) = reached {
                self.items.truncate(last + 1);
                self.sorted = self.items.len();
                return;
            }
            if self.sorted == self.items.len() {
                return;
            }
            n *= 8;
        }
    }

    /// Keeps those at least `p` times as probable as the most likely one.
    pub(super) fn keep_min_p(&mut self, p: f32) {
        if p > 0.0 {
            let floor = self.max() + p.ln();
            self.items.retain(|c| c.1 >= floor);
            self.sorted = self.sorted.min(self.items.len());
        }
    }

    /// Draws one by its probability at a temperature above 0. `uniform` is in
    /// [0, 1).
    pub(super) fn draw(&self, temperature: f32, uniform: f64) -> Option<Token> {
        let max = self.max();
        let scaled = |c: &Candidate| (f64::from(c.1 - max) / f64::from(temperature)).exp();
        let total: f64 = self.items.iter().map(scaled).sum();
        let mut left = uniform * total;
        for candidate in &self.items {
            left -= scaled(candidate);
            if left < 0.0 {
                return Some(candidate.0);
            }
        }
        // Rounding can leave a crumb; it belongs to the last one.
        self.items.last().map(|c| c.0)
    }

    fn max(&self) -> f32 {
        let from = if self.sorted > 0 { self.items.get(..1) } else { Some(self.items.as_slice()) };
        from.unwrap_or_default().iter().fold(f32::NEG_INFINITY, |m, c| m.max(c.1))
    }

    /// Brings the `n` largest to the front, sorted.
    fn sort_first(&mut self, n: usize) {
        if n <= self.sorted {
            return;
        }
        if n < self.items.len() {
            self.items.select_nth_unstable_by(n - 1, descending);
        }
        let n = n.min(self.items.len());
        if let Some(front) = self.items.get_mut(..n) {
            front.sort_unstable_by(descending);
        }
        self.sorted = n;
    }
}

fn weight(logit: f32, max: f32) -> f64 {
    f64::from(logit - max).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The selective sort keeps exactly what a full sort would.
        #[test]
        fn top_p_is_exact(logits in proptest::collection::vec(-8.0f32..8.0, 1..700), p in 0.0f32..1.0, k in 0usize..200) {
            let mut all: Vec<Candidate> = (0..).zip(logits.iter().copied()).collect();
            all.sort_by(descending);
            if k > 0 { all.truncate(k); }
            let max = all[0].1;
            let total: f64 = all.iter().map(|c| weight(c.1, max)).sum();
            let mut sum = 0.0;
            let mut expected = Vec::new();
            for c in &all {
                sum += weight(c.1, max);
                expected.push(c.0);
                if sum >= f64::from(p) * total { break; }
            }
            let mut candidates = Candidates::default();
            candidates.fill(&logits, k);
            candidates.keep_top_p(p);
            let kept: Vec<Token> = candidates.sorted().map(|c| c.0).collect();
            // Sums in another order may differ in the last bit, and so by one token.
            prop_assert!(kept.len().abs_diff(expected.len()) <= 1);
            let n = kept.len().min(expected.len());
            prop_assert_eq!(&kept[..n], &expected[..n]);
        }
    }
}
