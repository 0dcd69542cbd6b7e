//! An answer as one object.

use nala_sdk::llm::Finish;

use super::{Answer, Bytes, Chunks, finish_reason, logprobs, usage};
use crate::error::ApiError;
use crate::json;

impl<C: Chunks, B: Bytes> Answer<C, B> {
    /// Waits for the whole answer.
    ///
    /// # Errors
    /// What the generation fails with.
    pub fn whole(mut self) -> Result<Vec<u8>, ApiError> {
        let choice = |_| Choice { entries: self.logprobs.then(Vec::new), ..Choice::default() };
        let mut choices: Vec<Choice> = (0..self.choices).map(choice).collect();
        let mut count = 0;
        for (index, chunk) in self.chunks {
            let chunk = chunk?;
            count += chunk.tokens.len() as u64;
            let Some(choice) = choices.get_mut(index) else { continue };
            choice.text.push_str(&chunk.text);
            choice.finish = chunk.finish.or(choice.finish);
            if let Some(entries) = &mut choice.entries {
                logprobs::entries(&chunk.tokens, &mut self.bytes, entries);
            }
        }
        let size = |choice: &Choice| choice.text.len() + choice.entries.as_ref().map_or(0, Vec::len) + 200;
        let size: usize = choices.iter().map(size).sum();
        let mut out = Vec::with_capacity(size + 400);
        self.head.open("chat.completion", &mut out);
        out.extend_from_slice(b",\"choices\":[");
        for (index, choice) in choices.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            choice.write(index, &mut out)?;
        }
        out.extend_from_slice(b"],\"usage\":");
        usage(self.prompt, count, &mut out);
        out.push(b'}');
        Ok(out)
    }
}

/// One of the answers.
#[derive(Default)]
struct Choice {
    text: String,
    /// What stands in `logprobs.content`, where it is asked for.
    entries: Option<Vec<u8>>,
    finish: Option<Finish>,
}

impl Choice {
    fn write(&self, index: usize, out: &mut Vec<u8>) -> Result<(), ApiError> {
        let reason = finish_reason(self.finish.ok_or_else(broke_off)?)?;
        out.extend_from_slice(format!("{{\"index\":{index},").as_bytes());
        out.extend_from_slice(b"\"message\":{\"role\":\"assistant\",\"content\":");
        json::string(&self.text, out);
        out.extend_from_slice(b",\"refusal\":null},\"logprobs\":");
        match &self.entries {
            Some(entries) => {
                out.extend_from_slice(b"{\"content\":[");
                out.extend_from_slice(entries);
                out.extend_from_slice(b"],\"refusal\":null}");
            }
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(format!(",\"finish_reason\":\"{reason}\"}}").as_bytes());
        Ok(())
    }
}

/// The generation ended without saying why.
pub(super) fn broke_off() -> ApiError {
    nala_sdk::llm::Error::Backend("the generation broke off".to_owned()).into()
}
