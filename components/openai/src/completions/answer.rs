//! What is said, in the shape of completions: `text_completion`, whole or as
//! server-sent events.
//!
//! Each turn that says something becomes one event, and the reason of a choice's end
//! one without a text, as at OpenAI: there are clients that take no text from an event
//! with a reason. Then comes one with the usage if asked for, and `[DONE]`. What fails
//! in the middle is sent as an event with the error envelope.

use chat_format::Event;
use nala_sdk::Error;
use nala_sdk::http::BodyWriter;

use super::logprobs::Lists;
use crate::error::ApiError;
use crate::ids::Ids;
use crate::json;
use crate::parameters::StreamUsage;
use crate::turn::{Bytes, End, Running, Turn, Turns, broke_off};

/// Answers that are being generated.
#[derive(Debug)]
pub struct Answer<T, B> {
    /// One for each prompt.
    pub parts: Vec<Part<T, B>>,
    /// Names it.
    pub ids: Ids,
    /// How many alternatives are reported a token. None: no log-probabilities.
    pub logprobs: Option<u32>,
}

/// The answers to one prompt.
#[derive(Debug)]
pub struct Part<T, B> {
    /// What is generated.
    pub running: Running<T, B>,
    /// What each of them begins with.
    pub echo: String,
}

/// What has been counted so far.
#[derive(Default)]
struct Count {
    cached: u64,
    prompt: u64,
    tokens: u64,
}

impl Count {
    /// Appends the value of `usage`.
    fn write(&self, out: &mut Vec<u8>) {
        let Self { cached, prompt, tokens } = self;
        let usage = format!(
            "{{\"prompt_tokens\":{prompt},\"completion_tokens\":{tokens},\"total_tokens\":{},\
             \"prompt_tokens_details\":{{\"cached_tokens\":{cached}}}}}",
            prompt + tokens
        );
        out.extend_from_slice(usage.as_bytes());
    }
}

/// How far one of the answers is.
struct Choice {
    /// What is said and not sent.
    text: String,
    lists: Option<Lists>,
    /// Where the next token begins in the text, in characters.
    offset: usize,
    end: Option<End>,
}

impl Choice {
    fn take(&mut self, turn: Turn, bytes: &mut impl Bytes) {
        for event in turn.events {
            // Nothing looks for thoughts and calls in a text.
            if let Event::Content(text) = event {
                self.text.push_str(&text);
            }
        }
        if let Some(lists) = &mut self.lists {
            lists.add(&turn.tokens, &mut self.offset, bytes);
        }
        self.end = turn.end;
    }

    /// Appends what there is, as one of `choices`, and forgets it.
    fn write(&mut self, index: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{{\"index\":{index},\"text\":").as_bytes());
        json::string(&self.text, out);
        self.text.clear();
        out.extend_from_slice(b",\"logprobs\":");
        match &mut self.lists {
            Some(lists) => std::mem::take(lists).write(out),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"finish_reason\":");
        out.extend_from_slice(self.end.map_or(b"null", reason));
        out.push(b'}');
    }

    fn says_something(&self) -> bool {
        !self.text.is_empty() || self.lists.as_ref().is_some_and(|lists| !lists.is_empty())
    }
}

/// OpenAI's word for why an answer ended, as JSON.
fn reason(end: End) -> &'static [u8] {
    match end {
        End::Natural | End::StopText(_) => b"\"stop\"",
        End::Length | End::ContextFull => b"\"length\"",
    }
}

impl<T: Turns, B: Bytes> Part<T, B> {
    /// Calls `heard` with each turn of the answers, until all have ended.
    fn hear<E: From<ApiError>>(
        &mut self,
        logprobs: Option<u32>,
        count: &mut Count,
        mut heard: impl FnMut(usize, &mut Choice) -> Result<(), E>,
    ) -> Result<(), E> {
        let running = &mut self.running;
        count.cached += u64::from(running.prompt.cached);
        count.prompt += u64::from(running.prompt.cached) + u64::from(running.prompt.computed);
        let choice = |_| Choice {
            text: self.echo.clone(),
            lists: logprobs.map(|_| Lists::default()),
            offset: self.echo.chars().count(),
            end: None,
        };
        let mut choices: Vec<Choice> = (0..running.choices).map(choice).collect();
        for (index, turn) in running.turns.by_ref() {
            let turn = turn?;
            count.tokens += turn.tokens.len() as u64;
            let Some(choice) = choices.get_mut(index) else { continue };
            choice.take(turn, &mut running.bytes);
            heard(index, choice)?;
        }
        match choices.iter().all(|choice| choice.end.is_some()) {
            true => Ok(()),
            false => Err(broke_off().into()),
        }
    }
}

impl<T: Turns, B: Bytes> Answer<T, B> {
    /// Waits for the whole answer.
    ///
    /// # Errors
    /// What the generation fails with.
    pub fn whole(mut self) -> Result<Vec<u8>, ApiError> {
        let mut out = self.head();
        let mut count = Count::default();
        let mut first = 0;
        for part in &mut self.parts {
            let mut written: Vec<Vec<u8>> = vec![Vec::new(); part.running.choices];
            part.hear(self.logprobs, &mut count, |index, choice| {
                if let (Some(own), Some(_)) = (written.get_mut(index), choice.end) {
                    choice.write(first + index, own);
                }
                Ok::<(), ApiError>(())
            })?;
            for own in &written {
                if out.last() == Some(&b'}') {
                    out.push(b',');
                }
                out.extend_from_slice(own);
            }
            first += part.running.choices;
        }
        out.extend_from_slice(b"],\"usage\":");
        count.write(&mut out);
        out.push(b'}');
        Ok(out)
    }

    /// Writes the events as they come, one prompt after another.
    ///
    /// # Errors
    /// [`Error::Gone`] when the client hung up.
    pub fn stream(mut self, usage: StreamUsage, out: &mut BodyWriter) -> Result<(), Error> {
        let mut head = b"data: ".to_vec();
        head.extend_from_slice(&self.head());
        let tail: &[u8] = match usage {
            StreamUsage::Included => b"],\"usage\":null}\n\n",
            StreamUsage::Absent => b"]}\n\n",
        };
        let mut buffer = Vec::with_capacity(1024);
        let mut count = Count::default();
        let mut first = 0;
        for part in &mut self.parts {
            let ended = part.hear(self.logprobs, &mut count, |index, choice| {
                buffer.clear();
                let end = choice.end.take();
                if choice.says_something() {
                    buffer.extend_from_slice(&head);
                    choice.write(first + index, &mut buffer);
                    buffer.extend_from_slice(tail);
                }
                choice.end = end;
                if let Some(end) = end {
                    buffer.extend_from_slice(&head);
                    let index = first + index;
                    let item = format!("{{\"index\":{index},\"text\":\"\",\"logprobs\":null,\"finish_reason\":");
                    buffer.extend_from_slice(item.as_bytes());
                    buffer.extend_from_slice(reason(end));
                    buffer.push(b'}');
                    buffer.extend_from_slice(tail);
                }
                out.write(&buffer).map_err(Broken::Client)
            });
            match ended {
                Ok(()) => first += part.running.choices,
                Err(Broken::Client(error)) => return Err(error),
                Err(Broken::Generation(error)) => return out.write(format!("data: {}\n\n", error.body())),
            }
        }
        buffer.clear();
        if usage == StreamUsage::Included {
            buffer.extend_from_slice(&head);
            buffer.extend_from_slice(b"],\"usage\":");
            count.write(&mut buffer);
            buffer.extend_from_slice(b"}\n\n");
        }
        buffer.extend_from_slice(b"data: [DONE]\n\n");
        out.write(&buffer)
    }

    /// The first fields, up to the choices.
    fn head(&self) -> Vec<u8> {
        let running = self.parts.first().map(|part| &part.running);
        let (created, model) = running.map_or((0, ""), |running| (running.created, running.model.as_str()));
        let mut out = b"{\"id\":".to_vec();
        json::string(&self.ids.answer("cmpl-"), &mut out);
        out.extend_from_slice(format!(",\"object\":\"text_completion\",\"created\":{created},\"model\":").as_bytes());
        json::string(model, &mut out);
        out.extend_from_slice(b",\"system_fingerprint\":");
        json::string(crate::chat::FINGERPRINT, &mut out);
        out.extend_from_slice(b",\"choices\":[");
        out
    }
}

/// Why a stream ends early.
enum Broken {
    /// The client is gone.
    Client(Error),
    /// The answer failed.
    Generation(ApiError),
}

impl From<ApiError> for Broken {
    fn from(error: ApiError) -> Self {
        Self::Generation(error)
    }
}
