//! What can be refused without asking the engine thread.

use crate::Token;
use crate::error::Error;
use crate::options::{GenerateOptions, MAX_LOGPROBS, Sampling};

/// The most stop texts, and stop tokens, of a run.
const MAX_STOPS: usize = 64;
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

fn sampling(s: &Sampling) -> Result<(), Error> {
    let checks = [
        ("temperature", s.temperature, s.temperature >= 0.0, "0 or more"),
        ("top-p", s.top_p, (0.0..=1.0).contains(&s.top_p), "from 0 to 1"),
        ("min-p", s.min_p, (0.0..=1.0).contains(&s.min_p), "from 0 to 1"),
        ("repeat-penalty", s.repeat_penalty, s.repeat_penalty > 0.0, "more than 0"),
        ("frequency-penalty", s.frequency_penalty, true, "a finite number"),
        ("presence-penalty", s.presence_penalty, true, "a finite number"),
    ];
    for (name, value, holds, range) in checks {
        if !(holds && value.is_finite()) {
            return refuse(format!("{name} must be {range}, and is {value}"));
        }
    }
    Ok(())
}

fn refuse(text: String) -> Result<(), Error> {
    Err(Error::InvalidArgument(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut GenerateOptions)) -> String {
        let mut options = GenerateOptions::greedy(1);
        change(&mut options);
        generate(&options, 10).unwrap_err().to_string()
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
        assert!(refused(|o| o.stop_text = vec![String::new()]).contains("stop text"));
        assert!(refused(|o| o.stop_tokens = vec![10]).contains("token 10"));
        assert!(refused(|o| o.bias = vec![(11, 0.0)]).contains("token 11"));
        assert!(refused(|o| o.bias = vec![(1, f32::INFINITY)]).contains("bias"));
        assert!(refused(|o| o.top_logprobs = Some(21)).contains("top-logprobs"));
        assert_eq!(generate(&GenerateOptions::greedy(1), 10), Ok(()));
    }
}
