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
        self.keep_top_k(k);
    }

    /// Keeps the `k` largest; all for 0.
    pub(super) fn keep_top_k(&mut self, k: usize) {
        if k > 0 && k < self.items.len() {
            self.sort_first(k);
            self.items.truncate(k);
        }
    }

    /// Divides the logits by a temperature above 0.
    pub(super) fn scale(&mut self, temperature: f32) {
        for (_, logit) in &mut self.items {
            *logit /= temperature;
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

    /// Keeps those whose logit is at most `n` standard deviations below the
    /// largest.
    pub(super) fn keep_top_n_sigma(&mut self, n: f32) {
        if n <= 0.0 || self.items.len() <= 1 {
            return;
        }
        let count = self.items.len() as f64;
        let mean = self.items.iter().map(|c| f64::from(c.1)).sum::<f64>() / count;
        let variance = self.items.iter().map(|c| (f64::from(c.1) - mean).powi(2)).sum::<f64>() / count;
        let floor = f64::from(self.max()) - f64::from(n) * variance.sqrt();
        self.items.retain(|c| f64::from(c.1) >= floor);
        self.sorted = self.sorted.min(self.items.len());
    }

    /// Keeps those whose information is nearest to the entropy, up to a sum of
    /// `p`, at least one (Meister et al., "Locally typical sampling").
    pub(super) fn keep_typical(&mut self, p: f32) {
        if p >= 1.0 || self.items.is_empty() {
            return;
        }
        let (max, total) = (self.max(), self.total(1.0));
        let log_total = total.ln();
        let information = |c: &Candidate| log_total - f64::from(c.1 - max);
        let entropy: f64 = self.items.iter().map(|c| weight(c.1, max) / total * information(c)).sum();
        let distance = |c: &Candidate| (information(c) - entropy).abs();
        self.items.sort_by(|a, b| distance(a).total_cmp(&distance(b)).then(descending(a, b)));
        self.sorted = 0;
        let mut sum = 0.0;
        let last = self.items.iter().position(|c| {
            sum += weight(c.1, max) / total;
            sum > f64::from(p)
        });
        if let Some(last) = last {
            self.items.truncate(last + 1);
        }
    }

    /// Leaves out all that are at least as probable as `threshold`, but for the
    /// least probable of them.
    pub(super) fn exclude_top(&mut self, threshold: f32) {
        // Two cannot both be above a half.
        if threshold > 0.5 || self.items.len() < 2 {
            return;
        }
        let floor = f64::from(threshold) * self.total(1.0);
        let max = self.max();
        self.sort_first(self.items.len());
        let above = self.items.iter().take_while(|c| weight(c.1, max) >= floor).count();
        if above > 1 {
            self.items.drain(..above - 1);
            self.sorted = self.items.len();
        }
    }

    /// Keeps those that are no more surprising than `bits`, at least one.
    pub(super) fn keep_below_surprise(&mut self, bits: f64) {
        let (max, total) = (self.max(), self.total(1.0));
        let floor = total * (-bits).exp2();
        self.sort_first(self.items.len());
        let keep = self.items.iter().take_while(|c| weight(c.1, max) >= floor).count().max(1);
        self.items.truncate(keep);
        self.sorted = self.items.len();
    }

    /// Keeps so many that the surprise comes to `bits`, if the probabilities of all
    /// `vocab` tokens fall as those of the most likely do: as n^-s, with s estimated
    /// from the first 100 (Basu et al., "Mirostat", algorithm 1; as llama.cpp does).
    pub(super) fn keep_by_exponent(&mut self, bits: f64, vocab: usize) {
        const SAMPLE: usize = 100;
        self.sort_first(SAMPLE.min(self.items.len()));
        let (mut products, mut squares) = (0.0, 0.0);
        let likeliest = self.items.get(..self.sorted.min(SAMPLE)).unwrap_or_default();
        for (n, pair) in (1_u32..).zip(likeliest.windows(2)) {
            if let [a, b] = pair {
                let t = f64::from(n + 1).ln() - f64::from(n).ln();
                products += t * f64::from(a.1 - b.1);
                squares += t * t;
            }
        }
        let exponent = products / squares;
        let excess = exponent - 1.0;
        let kept = (excess * bits.exp2() / (1.0 - (vocab as f64).powf(-excess))).powf(1.0 / exponent);
        // With one candidate, or all as likely, there is no exponent to be had.
        if kept.is_finite() {
            self.keep_top_k((kept as usize).max(1));
        }
    }

    /// How surprising a token is among these, in bits.
    pub(super) fn surprise(&self, token: Token) -> Option<f64> {
        let (_, logit) = self.items.iter().find(|c| c.0 == token)?;
        Some((self.total(1.0) / weight(*logit, self.max())).log2())
    }

    /// The entropy as a part of the most that so many can have: 0 for a sure
    /// choice, 1 where all are as likely.
    pub(super) fn relative_entropy(&self) -> f64 {
        if self.items.len() <= 1 {
            return 0.0;
        }
        let (max, total) = (self.max(), self.total(1.0));
        let entropy: f64 =
            self.items.iter().map(|c| weight(c.1, max) / total * (total.ln() - f64::from(c.1 - max))).sum();
        entropy / (self.items.len() as f64).ln()
    }

    /// The sum of all weights at a temperature.
    fn total(&self, temperature: f64) -> f64 {
        let max = self.max();
        self.items.iter().map(|c| (f64::from(c.1 - max) / temperature).exp()).sum()
    }

    /// Draws one by its probability at a temperature above 0. `uniform` is in
    /// [0, 1).
    pub(super) fn draw(&self, temperature: f32, uniform: f64) -> Option<Token> {
        let max = self.max();
        let scaled = |c: &Candidate| (f64::from(c.1 - max) / f64::from(temperature)).exp();
        let mut left = uniform * self.total(f64::from(temperature));
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

    /// Candidates with these probabilities.
    fn of(probabilities: &[f32]) -> Candidates {
        let mut candidates = Candidates::default();
        let logits: Vec<f32> = probabilities.iter().map(|p| p.ln()).collect();
        candidates.fill(&logits, 0);
        candidates
    }

    fn kept(mut candidates: Candidates) -> Vec<Token> {
        candidates.sorted().map(|c| c.0).collect()
    }

    #[test]
    fn top_n_sigma_keeps_what_is_near_the_largest() {
        let mut candidates = Candidates::default();
        // Mean 2, standard deviation 2: the floor is 5 - 2.
        candidates.fill(&[0.0, 1.0, 2.0, 3.5, 5.0, 0.5], 0);
        candidates.keep_top_n_sigma(1.0);
        assert_eq!(kept(candidates), [4, 3]);
    }

    #[test]
    fn typical_keeps_what_is_as_surprising_as_expected() {
        // Entropy 1.09 nats; information 0.51, 1.20, 1.90 and 3.0: the second is
        // the nearest, then the first.
        let mut candidates = of(&[0.6, 0.3, 0.05, 0.05]);
        candidates.keep_typical(0.2);
        assert_eq!(kept(candidates), [1]);
        let mut candidates = of(&[0.6, 0.3, 0.05, 0.05]);
        candidates.keep_typical(0.5);
        assert_eq!(kept(candidates), [0, 1]);
    }

    #[test]
    fn excluding_the_top_leaves_the_least_of_it() {
        let mut candidates = of(&[0.1, 0.4, 0.3, 0.2]);
        candidates.exclude_top(0.19);
        assert_eq!(kept(candidates), [3, 0]);
        let mut candidates = of(&[0.1, 0.7, 0.1, 0.1]);
        candidates.exclude_top(0.19);
        assert_eq!(kept(candidates).len(), 4, "one alone above the threshold stays");
    }

    #[test]
    fn surprise_is_in_bits_and_entropy_a_part_of_the_most() {
        let mut candidates = of(&[0.5, 0.25, 0.125, 0.125]);
        assert!((candidates.surprise(1).unwrap() - 2.0).abs() < 1e-5);
        assert!((candidates.relative_entropy() - 1.75 / 2.0).abs() < 1e-5);
        assert!((of(&[0.25; 4]).relative_entropy() - 1.0).abs() < 1e-9);
        candidates.keep_below_surprise(2.01);
        assert_eq!(kept(candidates), [0, 1]);
        let mut candidates = of(&[0.5, 0.5]);
        candidates.keep_below_surprise(0.1);
        assert_eq!(kept(candidates).len(), 1);
    }

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
