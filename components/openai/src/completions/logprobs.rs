//! `choices[].logprobs` in the shape of completions: parallel lists.

use std::collections::BTreeMap;

use nala_sdk::llm::Sampled;

use crate::chat::logprobs::finite;
use crate::json;
use crate::turn::Bytes;

/// Collects the lists of one answer, or of one chunk of it.
#[derive(Debug, Default)]
pub(super) struct Lists {
    tokens: Vec<u8>,
    logprobs: Vec<u8>,
    tops: Vec<u8>,
    offsets: Vec<u8>,
}

impl Lists {
    /// Adds tokens. `offset` is where they begin in the text of the answer, in
    /// characters (Unicode code points), and is moved behind them. The tokens that a
    /// character is spread over begin where it does and behind it.
    pub(super) fn add(&mut self, tokens: &[Sampled], offset: &mut usize, bytes: &mut impl Bytes) {
        for sampled in tokens {
            if !self.tokens.is_empty() {
                for list in [&mut self.tokens, &mut self.logprobs, &mut self.tops, &mut self.offsets] {
                    list.push(b',');
                }
            }
            let own = bytes(sampled.id);
            let text = String::from_utf8_lossy(&own).into_owned();
            let logprob = finite(sampled.logprob);
            json::string(&text, &mut self.tokens);
            self.logprobs.extend_from_slice(logprob.to_string().as_bytes());
            self.offsets.extend_from_slice(offset.to_string().as_bytes());
            // What only goes on with a character is none more.
            *offset += own.iter().filter(|byte| **byte & 0xc0 != 0x80).count();

            // The token itself is there even if it is not one of the most likely, as
            // at OpenAI. Tokens that look alike as text cannot be told apart here: the
            // likelier one stands for both.
            let mut top = BTreeMap::from([(text, logprob)]);
            for alt in &sampled.alts {
                let text = String::from_utf8_lossy(&bytes(alt.id)).into_owned();
                let logprob = finite(Some(alt.logprob));
                top.entry(text).and_modify(|known| *known = known.max(logprob)).or_insert(logprob);
            }
            self.tops.push(b'{');
            for (index, (text, logprob)) in top.iter().enumerate() {
                if index > 0 {
                    self.tops.push(b',');
                }
                json::string(text, &mut self.tops);
                self.tops.extend_from_slice(format!(":{logprob}").as_bytes());
            }
            self.tops.push(b'}');
        }
    }

    /// Whether no token was added.
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Appends the object.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for (name, list) in [
            (&b"{\"tokens\":["[..], &self.tokens),
            (b"],\"token_logprobs\":[", &self.logprobs),
            (b"],\"top_logprobs\":[", &self.tops),
            (b"],\"text_offset\":[", &self.offsets),
        ] {
            out.extend_from_slice(name);
            out.extend_from_slice(list);
        }
        out.extend_from_slice(b"]}");
    }
}
