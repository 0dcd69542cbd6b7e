//! Choosing the next token from a row of logits.
//!
//! The steps run in one order, which is llama.cpp's default chain: bias,
//! penalties, DRY, the constraint's mask, top-n-sigma, top-k, typical, top-p, min-p, XTC, temperature
//! (fixed or dynamic), draw. Mirostat takes the place of the steps between DRY
//! and the temperature.
//! Log-probabilities are those of the model: they are taken before any step.

mod candidates;
mod dry;
mod penalties;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::Token;
use crate::constraint::TokenMask;
use crate::options::{Alternative, MirostatVersion, Sampled, Sampling};
use candidates::Candidates;
use dry::Repetitions;
use penalties::Recent;

/// The sampler of one run.
pub(crate) struct Sampler {
    params: Sampling,
    bias: Vec<(Token, f32)>,
    top_logprobs: Option<usize>,
    rng: ChaCha8Rng,
    recent: Recent,
    repetitions: Repetitions,
    /// The most surprise that Mirostat allows now, in bits.
    surprise: f64,
}

/// Memory that samplers share, so that a step allocates nothing of the
/// vocabulary's size.
#[derive(Default)]
pub(crate) struct Scratch {
    logits: Vec<f32>,
    candidates: Candidates,
}

impl Sampler {
    pub(crate) fn new(params: Sampling, bias: Vec<(Token, f32)>, top_logprobs: Option<u32>) -> Self {
        let seed = params.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        let (recent, repetitions) = (Recent::new(&params), Repetitions::new(params.dry.as_ref()));
        let surprise = params.mirostat.map_or(0.0, |mirostat| 2.0 * f64::from(mirostat.tau));
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Self { params, bias, top_logprobs: top_logprobs.map(|n| n as usize), rng, recent, repetitions, surprise }
    }

    /// Whether each token is to come with its log-probability.
    pub(crate) fn reports_logprobs(&self) -> bool {
        self.top_logprobs.is_some()
    }

    /// Takes note of a token that the run has generated.
    pub(crate) fn accept(&mut self, token: Token) {
        self.recent.push(token);
        self.repetitions.push(token);
    }

    /// Chooses a token, out of those that a mask allows if there is one.
    ///
    /// None where no token has a finite logit: the model computed nonsense, or
    /// the bias forbids everything.
    pub(crate) fn sample(
        &mut self,
        logits: &[f32],
        mask: Option<&TokenMask>,
        scratch: &mut Scratch,
    ) -> Option<Sampled> {
        let token = self.choose(logits, mask, scratch)?;
        let (logprob, alternatives) = match self.top_logprobs {
            Some(n) => {
                let norm = Norm::of(logits);
                let logprob = logits.get(token as usize).map(|&l| norm.logprob(l));
                (logprob, top(logits, norm, n, &mut scratch.candidates))
            }
            None => (None, Vec::new()),
        };
        let forced = mask.is_some_and(|mask| mask.allowed() == 1);
        Some(Sampled { token, logprob, alternatives, forced })
    }

    fn choose(&mut self, logits: &[f32], mask: Option<&TokenMask>, scratch: &mut Scratch) -> Option<Token> {
        let Scratch { logits: changed, candidates } = scratch;
        let penalised = self.recent.penalises();
        let row = if penalised || !self.bias.is_empty() || self.params.dry.is_some() || mask.is_some() {
            changed.clear();
            changed.extend_from_slice(logits);
            for &(token, add) in &self.bias {
                if let Some(logit) = changed.get_mut(token as usize) {
                    *logit += add;
                }
            }
            if penalised {
                self.recent.apply(&self.params, changed);
            }
            if let Some(dry) = &self.params.dry {
                self.repetitions.apply(dry, changed);
            }
            if let Some(mask) = mask {
                mask.apply(changed);
            }
            changed.as_slice()
        } else {
            logits
        };
        if self.params.temperature <= 0.0 {
            return argmax(row);
        }
        if let Some(mirostat) = self.params.mirostat {
            candidates.fill(row, 0);
            candidates.scale(self.params.temperature);
            match mirostat.version {
                MirostatVersion::One => candidates.keep_by_exponent(self.surprise, logits.len()),
                MirostatVersion::Two => candidates.keep_below_surprise(self.surprise),
            }
            let token = candidates.draw(1.0, self.uniform())?;
            if let Some(seen) = candidates.surprise(token) {
                self.surprise -= f64::from(mirostat.eta) * (seen - f64::from(mirostat.tau));
            }
            return Some(token);
        }
        let p = &self.params;
        candidates.fill(row, 0);
        candidates.keep_top_n_sigma(p.top_n_sigma);
        candidates.keep_top_k(p.top_k as usize);
        candidates.keep_typical(p.typical_p);
        candidates.keep_top_p(p.top_p);
        candidates.keep_min_p(p.min_p);
        if let Some(xtc) = p.xtc
            && self.uniform() < f64::from(xtc.probability)
        {
            candidates.exclude_top(xtc.threshold);
        }
        let temperature = match self.params.dynamic_temperature {
            None => self.params.temperature,
            Some(dynamic) => {
                let least = (self.params.temperature - dynamic.range).max(0.0);
                let most = self.params.temperature + dynamic.range;
                let part = candidates.relative_entropy().powf(f64::from(dynamic.exponent)) as f32;
                least + (most - least) * part
            }
        };
        let uniform = self.uniform();
        // Colder than this a softmax cannot tell from taking the largest.
        candidates.draw(temperature.max(1e-4), uniform)
    }

    /// From 0 to 1, without 1.
    fn uniform(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// The first of the largest finite logits.
pub(crate) fn argmax(logits: &[f32]) -> Option<Token> {
    // Two passes, each of which the compiler turns into vector code: a single
    // one that carries the index along is several times slower.
    let max = logits.iter().fold(f32::NEG_INFINITY, |m, &l| if l > m { l } else { m });
    if max == f32::NEG_INFINITY {
        return None;
    }
    logits.iter().position(|&l| l == max).and_then(|i| Token::try_from(i).ok())
}

/// What turns logits into log-probabilities: log p = (logit - max) - log_sum.
/// Kept apart, since one number for both loses digits where logits are large.
#[derive(Clone, Copy)]
struct Norm {
    max: f32,
    log_sum: f32,
}

impl Norm {
    /// NaN counts as impossible.
    fn of(logits: &[f32]) -> Self {
        let max = logits.iter().fold(f32::NEG_INFINITY, |m, &l| m.max(l));
        let sum: f32 = logits.iter().filter(|l| !l.is_nan()).map(|l| (l - max).exp()).sum();
        Self { max, log_sum: sum.ln() }
    }

    fn logprob(self, logit: f32) -> f32 {
        (logit - self.max) - self.log_sum
    }
}

/// The `n` most likely tokens, the likeliest first.
pub(crate) fn most_likely(logits: &[f32], n: usize, scratch: &mut Scratch) -> Vec<Alternative> {
    top(logits, Norm::of(logits), n, &mut scratch.candidates)
}

/// The log-probabilities of tokens; that of one outside of the vocabulary is -inf.
pub(crate) fn logprobs(logits: &[f32], tokens: &[Token]) -> Vec<f32> {
    let norm = Norm::of(logits);
    let logprob = |&token: &Token| logits.get(token as usize).map_or(f32::NEG_INFINITY, |&l| norm.logprob(l));
    tokens.iter().map(logprob).collect()
}

/// The entropy of the distribution, in nats: the sum of -p ln p.
pub(crate) fn entropy(logits: &[f32]) -> f32 {
    let norm = Norm::of(logits);
    let part = |&logit: &f32| {
        let logprob = norm.logprob(logit);
        // p ln p goes to 0 with p, and is NaN at 0.
        if logprob.is_finite() { -logprob * logprob.exp() } else { 0.0 }
    };
    logits.iter().map(part).sum()
}

fn top(logits: &[f32], norm: Norm, n: usize, candidates: &mut Candidates) -> Vec<Alternative> {
    if n == 0 {
        return Vec::new();
    }
    candidates.fill(logits, n);
    candidates.sorted().map(|(token, logit)| Alternative { token, logprob: norm.logprob(logit) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Dry, DynamicTemperature, Mirostat, Xtc};

    fn sampler(params: Sampling) -> Sampler {
        Sampler::new(params, Vec::new(), None)
    }

    fn drawn(params: &Sampling, logits: &[f32], n: u64) -> Vec<Token> {
        let mut scratch = Scratch::default();
        (0..n)
            .map(|seed| {
                let params = Sampling { seed: Some(seed), ..params.clone() };
                sampler(params).sample(logits, None, &mut scratch).unwrap().token
            })
            .collect()
    }

    const WARM: Sampling = Sampling { temperature: 1.0, ..Sampling::GREEDY };

    #[test]
    fn greedy_takes_the_first_of_the_largest() {
        let mut scratch = Scratch::default();
        let mut pick = |logits: &[f32]| sampler(Sampling::GREEDY).sample(logits, None, &mut scratch).map(|s| s.token);
        assert_eq!(pick(&[1.0, 3.0, 3.0, 2.0]), Some(1));
        assert_eq!(pick(&[f32::NAN, -1.0, f32::NAN]), Some(1));
        assert_eq!(pick(&[f32::NAN, f32::NEG_INFINITY]), None);
    }

    #[test]
    fn one_seed_one_draw() {
        let logits: Vec<f32> = (0..1000).map(|i| (i % 7) as f32).collect();
        assert_eq!(drawn(&WARM, &logits, 50), drawn(&WARM, &logits, 50));
        let distinct: std::collections::BTreeSet<_> = drawn(&WARM, &logits, 50).into_iter().collect();
        assert!(distinct.len() > 20, "seeds differ, draws hardly do: {distinct:?}");
    }

    /// χ² of 20,000 draws against the softmax, 3 degrees of freedom: under 16.3
    /// in 999 of 1,000 cases, and the seeds are fixed.
    #[test]
    fn draws_follow_the_distribution() {
        let logits = [0.0_f32, 1.0, 2.0, -1.0];
        let n = 20_000;
        let mut counts = [0.0_f64; 4];
        for token in drawn(&WARM, &logits, n) {
            counts[token as usize] += 1.0;
        }
        let norm: f64 = logits.iter().map(|l| f64::from(*l).exp()).sum();
        let chi: f64 = logits
            .iter()
            .zip(counts)
            .map(|(l, seen)| {
                let expected = n as f64 * f64::from(*l).exp() / norm;
                (seen - expected).powi(2) / expected
            })
            .sum();
        assert!(chi < 16.3, "χ² = {chi}");
    }

    #[test]
    fn truncations_cut_the_tail() {
        // Probabilities 0.5, 0.25, 0.125, 0.125.
        let logits: Vec<f32> = [0.5_f32, 0.25, 0.125, 0.125].iter().map(|p| p.ln()).collect();
        let set =
            |params: Sampling| drawn(&params, &logits, 400).into_iter().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(set(WARM).len(), 4);
        assert_eq!(set(Sampling { top_k: 2, ..WARM }), [0, 1].into());
        assert_eq!(set(Sampling { top_p: 0.6, ..WARM }), [0, 1].into());
        assert_eq!(set(Sampling { top_p: 0.0, ..WARM }), [0].into());
        assert_eq!(set(Sampling { min_p: 0.3, ..WARM }), [0, 1].into());
        assert_eq!(set(Sampling { temperature: 0.01, ..WARM }), [0].into());
    }

    #[test]
    fn rarer_steps_change_what_can_be_drawn() {
        // Probabilities 0.5, 0.25, 0.125, 0.125.
        let logits: Vec<f32> = [0.5_f32, 0.25, 0.125, 0.125].iter().map(|p| p.ln()).collect();
        let set =
            |params: Sampling| drawn(&params, &logits, 400).into_iter().collect::<std::collections::BTreeSet<_>>();
        let xtc = |probability| Sampling { xtc: Some(Xtc { probability, threshold: 0.2 }), ..WARM };
        assert_eq!(set(xtc(1.0)), [1, 2, 3].into());
        assert_eq!(set(xtc(0.5)).len(), 4, "only now and then");
        assert_eq!(set(Sampling { top_n_sigma: 0.1, ..WARM }), [0].into());
        assert_eq!(set(Sampling { typical_p: 0.1, ..WARM }).len(), 1);
        let dynamic = |range| {
            let dynamic_temperature = Some(DynamicTemperature { range, exponent: 1.0 });
            set(Sampling { temperature: 0.05, dynamic_temperature, ..WARM })
        };
        assert_eq!(dynamic(0.01), [0].into());
        assert_eq!(dynamic(2.0).len(), 4, "the model is undecided");
    }

    /// Mirostat's whole point: the average surprise comes to its target.
    #[test]
    fn mirostat_holds_the_surprise() {
        let logits: Vec<f32> = (0..2000).map(|i| -((i + 1) as f32).ln()).collect();
        for (version, tau) in
            [(MirostatVersion::Two, 2.0_f32), (MirostatVersion::Two, 4.0), (MirostatVersion::One, 3.0)]
        {
            let params = Sampling { mirostat: Some(Mirostat { version, tau, eta: 0.1 }), seed: Some(7), ..WARM };
            let (mut sampler, mut scratch) = (sampler(params), Scratch::default());
            let norm = Norm::of(&logits);
            let mut sum = 0.0;
            for n in 0..1200 {
                let token = sampler.sample(&logits, None, &mut scratch).unwrap().token;
                if n >= 200 {
                    sum -= norm.logprob(logits[token as usize]) / std::f32::consts::LN_2;
                }
            }
            let mean = sum / 1000.0;
            // The bound is on the truncated distribution, whose surprise is lower.
            assert!(mean > tau && mean < tau + 2.5, "{mean} bits for {tau}");
        }
    }

    #[test]
    fn a_phrase_is_not_said_again() {
        let dry = Dry { multiplier: 5.0, base: 2.0, allowed_length: 2, window: 64, breakers: Vec::new() };
        let mut sampler = sampler(Sampling { dry: Some(dry), ..Sampling::GREEDY });
        for token in [1, 2, 3, 1, 2] {
            sampler.accept(token);
        }
        let picked = sampler.sample(&[0.0, 1.0, 2.0, 3.0], None, &mut Scratch::default()).unwrap();
        assert_eq!(picked.token, 2, "3 would go on with \"1 2 3\"");
    }

    #[test]
    fn bias_comes_first_and_can_forbid() {
        let mut scratch = Scratch::default();
        let mut forbid = Sampler::new(Sampling::GREEDY, vec![(1, f32::NEG_INFINITY), (9, 1.0)], Some(2));
        let sampled = forbid.sample(&[1.0, 3.0, 2.0], None, &mut scratch).unwrap();
        assert_eq!(sampled.token, 2);
        // What is reported is the model's opinion, before the bias.
        assert_eq!(sampled.alternatives[0].token, 1);
        assert!(sampled.logprob.unwrap() < sampled.alternatives[0].logprob);
    }

    #[test]
    fn log_probabilities_sum_to_one() {
        let mut scratch = Scratch::default();
        let mut sampler = Sampler::new(Sampling::GREEDY, Vec::new(), Some(4));
        let sampled = sampler.sample(&[1000.0, 1001.0, 999.0, 1000.5], None, &mut scratch).unwrap();
        let sum: f32 = sampled.alternatives.iter().map(|a| a.logprob.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        assert!(sampled.alternatives.is_sorted_by(|a, b| a.logprob >= b.logprob));
    }
}
