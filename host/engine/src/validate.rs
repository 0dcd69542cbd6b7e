//! What can be refused without asking the engine thread.

use crate::Token;
use crate::engine::{MAX_EMBEDDING_INPUTS, Step};
use crate::error::Error;
use crate::options::{GenerateOptions, MAX_DRY_WINDOW, MAX_LOGPROBS, MAX_READOUT_TOKENS, Readout, Sampling};

/// The most stop texts, and stop tokens, of a run.
const MAX_STOPS: usize = 64;
/// The most control tokens of a run whose text leaves.
const MAX_SHOWN: usize = 64;
/// The longest stop text, in bytes.
const MAX_STOP_TEXT: usize = 1024;
/// The longest name of a saved session, in bytes.
const MAX_NAME: usize = 256;
/// The most biased tokens of a run.
const MAX_BIAS: usize = 4096;

pub(crate) fn tokens(tokens: &[Token], vocab: u32) -> Result<(), Error> {
    match tokens.iter().find(|&&t| t >= vocab) {
        Some(token) => refuse(format!("token {token} is outside the vocabulary, which ends at {}", vocab - 1)),
        None => Ok(()),
    }
}

pub(crate) fn name(name: &str) -> Result<(), Error> {
    match (1..=MAX_NAME).contains(&name.len()) {
        true => Ok(()),
        false => refuse(format!("a session's name must have 1 to {MAX_NAME} bytes, and this one has {}", name.len())),
    }
}

pub(crate) fn generate(options: &GenerateOptions, vocab: u32) -> Result<(), Error> {
    if options.max_new == 0 {
        return refuse("max-new must be at least 1".into());
    }
    if options.stop_text.len() > MAX_STOPS || options.stop_tokens.len() > MAX_STOPS {
        return refuse(format!("at most {MAX_STOPS} stop texts and {MAX_STOPS} stop tokens are allowed"));
    }
    if options.stop_text.iter().any(|s| s.is_empty() || s.len() > MAX_STOP_TEXT) {
        return refuse(format!("each stop text must have 1 to {MAX_STOP_TEXT} bytes"));
    }
    tokens(&options.stop_tokens, vocab)?;
    if options.shown.len() > MAX_SHOWN {
        return refuse(format!("the text of at most {MAX_SHOWN} control tokens can be shown"));
    }
    tokens(&options.shown, vocab)?;
    if options.bias.len() > MAX_BIAS {
        return refuse(format!("at most {MAX_BIAS} tokens can be biased"));
    }
    if let Some((token, _)) = options.bias.iter().find(|(t, _)| *t >= vocab) {
        return tokens(&[*token], vocab);
    }
    if options.bias.iter().any(|(_, add)| add.is_nan() || *add == f32::INFINITY) {
        return refuse("a bias must be a number or -inf".into());
    }
    if options.top_logprobs.is_some_and(|n| n > MAX_LOGPROBS) {
        return refuse(format!("top-logprobs must be at most {MAX_LOGPROBS}"));
    }
    sampling(&options.sampling)
}

/// The most readouts of a step.
const MAX_READOUTS: usize = 16;

pub(crate) fn step(step: &Step, vocab: u32) -> Result<(), Error> {
    tokens(&step.input, vocab)?;
    if step.readouts.len() > MAX_READOUTS {
        return refuse(format!("a step has at most {MAX_READOUTS} readouts a session"));
    }
    for readout in &step.readouts {
        match readout {
            Readout::Sample(params) => sampling(params)?,
            Readout::Top(n) if *n > MAX_LOGPROBS => {
                return refuse(format!("top must be at most {MAX_LOGPROBS}, and is {n}"));
            }
            Readout::LogprobsOf(list) if list.len() > MAX_READOUT_TOKENS => {
                return refuse(format!("log-probabilities of at most {MAX_READOUT_TOKENS} tokens can be read"));
            }
            Readout::LogprobsOf(list) => tokens(list, vocab)?,
            Readout::Top(_) | Readout::Entropy => {}
        }
    }
    Ok(())
}

/// The most tokens of all of them together.
const MAX_INPUT_TOKENS: usize = 1 << 19;

pub(crate) fn embeddings(inputs: &[Vec<Token>], most: u32, vocab: u32) -> Result<(), Error> {
    if inputs.len() > MAX_EMBEDDING_INPUTS {
        let count = inputs.len();
        return refuse(format!("at most {MAX_EMBEDDING_INPUTS} inputs can be given at once, and these are {count}"));
    }
    for (n, input) in inputs.iter().enumerate() {
        if input.is_empty() {
            return refuse(format!("input {n} is empty; leave it out"));
        }
        if input.len() > most as usize {
            return Err(Error::ContextFull { free: most });
        }
        tokens(input, vocab)?;
    }
    match inputs.iter().map(Vec::len).sum::<usize>() {
        ..=MAX_INPUT_TOKENS => Ok(()),
        sum => {
            refuse(format!("the inputs have {sum} tokens together, but {MAX_INPUT_TOKENS} are the most; give fewer"))
        }
    }
}

fn sampling(s: &Sampling) -> Result<(), Error> {
    let checks = [
        ("temperature", s.temperature, s.temperature >= 0.0, "0 or more"),
        ("top-p", s.top_p, (0.0..=1.0).contains(&s.top_p), "from 0 to 1"),
        ("min-p", s.min_p, (0.0..=1.0).contains(&s.min_p), "from 0 to 1"),
        ("repeat-penalty", s.repeat_penalty, s.repeat_penalty > 0.0, "more than 0"),
        ("frequency-penalty", s.frequency_penalty, true, "a finite number"),
        ("presence-penalty", s.presence_penalty, true, "a finite number"),
        ("top-n-sigma", s.top_n_sigma, s.top_n_sigma >= 0.0, "0 or more"),
        ("typical-p", s.typical_p, s.typical_p > 0.0 && s.typical_p <= 1.0, "more than 0 and at most 1"),
    ];
    let dry = s.dry.as_ref().map(|dry| {
        [
            ("dry multiplier", dry.multiplier, dry.multiplier > 0.0, "more than 0"),
            ("dry base", dry.base, dry.base >= 1.0, "1 or more"),
            ("dry allowed-length", dry.allowed_length as f32, dry.allowed_length > 0, "1 or more"),
            ("dry window", dry.window as f32, dry.window <= MAX_DRY_WINDOW, "at most 4096"),
        ]
    });
    let xtc = s.xtc.map(|xtc| {
        [
            ("xtc probability", xtc.probability, (0.0..=1.0).contains(&xtc.probability), "from 0 to 1"),
            ("xtc threshold", xtc.threshold, (0.0..=1.0).contains(&xtc.threshold), "from 0 to 1"),
        ]
    });
    let dynamic = s.dynamic_temperature.map(|dynamic| {
        [
            ("temperature range", dynamic.range, dynamic.range > 0.0, "more than 0"),
            ("temperature exponent", dynamic.exponent, dynamic.exponent > 0.0, "more than 0"),
        ]
    });
    let mirostat = s.mirostat.map(|mirostat| {
        [
            ("mirostat tau", mirostat.tau, mirostat.tau > 0.0, "more than 0"),
            ("mirostat eta", mirostat.eta, (0.0..=1.0).contains(&mirostat.eta), "from 0 to 1"),
        ]
    });
    let checks = checks
        .into_iter()
        .chain(dry.into_iter().flatten())
        .chain(xtc.into_iter().flatten())
        .chain(dynamic.into_iter().flatten())
        .chain(mirostat.into_iter().flatten());
    for (name, value, holds, range) in checks {
        if !(holds && value.is_finite()) {
            return refuse(format!("{name} must be {range}, and is {value}"));
        }
    }
    if s.dry.as_ref().is_some_and(|dry| dry.breakers.len() > MAX_STOPS) {
        return refuse(format!("at most {MAX_STOPS} tokens can break a repetition"));
    }
    Ok(())
}

fn refuse(text: String) -> Result<(), Error> {
    Err(Error::InvalidArgument(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Dry, Mirostat, MirostatVersion, Xtc};

    fn refused(change: impl FnOnce(&mut GenerateOptions)) -> String {
        let mut options = GenerateOptions::greedy(1);
        change(&mut options);
        generate(&options, 10).unwrap_err().to_string()
    }

    #[test]
    fn inputs_out_of_range_are_named() {
        let refused = |inputs: Vec<Vec<Token>>| embeddings(&inputs, 1000, 10).unwrap_err();
        assert!(refused(vec![vec![1]; 2049]).to_string().contains("at most 2048 inputs"));
        assert!(refused(vec![vec![1], Vec::new()]).to_string().contains("input 1 is empty"));
        assert!(refused(vec![vec![10]]).to_string().contains("token 10"));
        assert!(refused(vec![vec![1; 1000]; 600]).to_string().contains("600000 tokens together"));
        assert_eq!(refused(vec![vec![1], vec![1; 1001]]), Error::ContextFull { free: 1000 });
        assert_eq!(embeddings(&vec![vec![1; 1000]; 500], 1000, 10), Ok(()));
    }

    #[test]
    fn options_out_of_range_are_named() {
        assert!(refused(|o| o.max_new = 0).contains("max-new"));
        assert!(refused(|o| o.sampling.temperature = -1.0).contains("temperature"));
        assert!(refused(|o| o.sampling.temperature = f32::NAN).contains("temperature"));
        assert!(refused(|o| o.sampling.top_p = 1.5).contains("top-p"));
        assert!(refused(|o| o.sampling.min_p = -0.1).contains("min-p"));
        assert!(refused(|o| o.sampling.repeat_penalty = 0.0).contains("repeat-penalty"));
        assert!(refused(|o| o.sampling.presence_penalty = f32::INFINITY).contains("presence-penalty"));
        assert!(refused(|o| o.sampling.typical_p = 0.0).contains("typical-p"));
        assert!(refused(|o| o.sampling.xtc = Some(Xtc { probability: 2.0, threshold: 0.1 })).contains("xtc"));
        let mirostat = Some(Mirostat { version: MirostatVersion::Two, tau: f32::NAN, eta: 0.1 });
        assert!(refused(|o| o.sampling.mirostat = mirostat).contains("mirostat tau"));
        let dry = Dry { multiplier: 1.0, base: 2.0, allowed_length: 2, window: 5000, breakers: Vec::new() };
        assert!(refused(|o| o.sampling.dry = Some(dry)).contains("dry window"));
        assert!(refused(|o| o.stop_text = vec![String::new()]).contains("stop text"));
        assert!(refused(|o| o.stop_tokens = vec![10]).contains("token 10"));
        assert!(refused(|o| o.shown = vec![1, 10]).contains("token 10"));
        assert!(refused(|o| o.shown = vec![1; 65]).contains("at most 64 control tokens"));
        assert!(refused(|o| o.bias = vec![(11, 0.0)]).contains("token 11"));
        assert!(refused(|o| o.bias = vec![(1, f32::INFINITY)]).contains("bias"));
        assert!(refused(|o| o.top_logprobs = Some(21)).contains("top-logprobs"));
        assert_eq!(generate(&GenerateOptions::greedy(1), 10), Ok(()));
    }
}
