//! An answer as one object.

use super::{Answer, Bytes, Chunks, finish_reason, logprobs, usage};
use crate::error::ApiError;
use crate::json;

impl<C: Chunks, B: Bytes> Answer<C, B> {
    /// Waits for the whole answer.
    ///
    /// # Errors
    /// What the generation fails with.
    pub fn whole(mut self) -> Result<Vec<u8>, ApiError> {
        let mut text = String::new();
        let mut entries = Vec::new();
        let mut count = 0;
        let mut finish = None;
        for chunk in self.chunks {
            let chunk = chunk?;
            text.push_str(&chunk.text);
            count += chunk.tokens.len() as u64;
            finish = chunk.finish.or(finish);
            if self.logprobs {
                logprobs::entries(&chunk.tokens, &mut self.bytes, &mut entries);
            }
        }
        let reason = match finish {
            Some(finish) => finish_reason(finish)?,
            None => return Err(broke_off()),
        };

        let mut out = Vec::with_capacity(text.len() + entries.len() + 600);
        self.head.open("chat.completion", &mut out);
        out.extend_from_slice(b",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
        json::string(&text, &mut out);
        out.extend_from_slice(b",\"refusal\":null},\"logprobs\":");
        if self.logprobs {
            out.extend_from_slice(b"{\"content\":[");
            out.extend_from_slice(&entries);
            out.extend_from_slice(b"],\"refusal\":null}");
        } else {
            out.extend_from_slice(b"null");
        }
        out.extend_from_slice(format!(",\"finish_reason\":\"{reason}\"}}],\"usage\":").as_bytes());
        usage(self.prompt, count, &mut out);
        out.push(b'}');
        Ok(out)
    }
}

/// The generation ended without saying why.
pub(super) fn broke_off() -> ApiError {
    nala_sdk::llm::Error::Backend("the generation broke off".to_owned()).into()
}
