//! `choices[].logprobs`.

use nala_sdk::llm::Sampled;

use crate::json;
use crate::turn::Bytes;

/// Stands for a probability of nothing, for which JSON has no number; OpenAI's
/// documentation names this one.
const NEVER: f32 = -9999.0;

/// A log-probability as JSON can tell it.
pub(crate) fn finite(logprob: Option<f32>) -> f32 {
    logprob.filter(|logprob| logprob.is_finite()).map_or(NEVER, |logprob| logprob.max(NEVER))
}

/// Appends the entries of `logprobs.content`, after a comma where there are some
/// already.
pub(crate) fn entries(tokens: &[Sampled], bytes: &mut impl Bytes, out: &mut Vec<u8>) {
    for sampled in tokens {
        if out.last() == Some(&b'}') {
            out.push(b',');
        }
        open(sampled.id, finite(sampled.logprob), bytes, out);
        out.extend_from_slice(b",\"top_logprobs\":[");
        for (index, alt) in sampled.alts.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            open(alt.id, finite(Some(alt.logprob)), bytes, out);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }
}

/// Appends a token without the closing brace.
fn open(token: u32, logprob: f32, bytes: &mut impl Bytes, out: &mut Vec<u8>) {
    let bytes = bytes(token);
    out.extend_from_slice(b"{\"token\":");
    json::string(&String::from_utf8_lossy(&bytes), out);
    let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
    out.extend_from_slice(format!(",\"logprob\":{logprob},\"bytes\":[{}]", list.join(",")).as_bytes());
}
