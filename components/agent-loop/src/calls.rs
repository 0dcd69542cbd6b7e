//! The calls of a turn, all at a time.

use std::collections::VecDeque;

use nala_sdk::tools::{self, Answer, Body, Content, Contents, Event, Progress, Running};

use crate::speaker::Wanted;

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// The call's number in the run, from 1 on.
    pub id: u32,
    /// What the model reads of it.
    pub text: String,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer.
    Answered,
    /// The tool could not do what it was asked, and says why.
    Declined,
    /// There is no answer.
    Failed(Failure),
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// There is no such tool, or it is not given what it takes.
    Wrong,
    /// It broke, or a limit of its own ended it.
    Broken,
    /// There is no room for it now.
    Busy,
}

impl Outcome {
    /// Whether it came to nothing.
    #[must_use]
    pub fn is_error(self) -> bool {
        self != Self::Answered
    }
}

/// What is heard of calls.
pub(crate) enum Heard {
    /// One has got so far.
    Progress(u32, Progress),
    /// One is over.
    Returned(Returned),
}

/// What the model wants of the tools in a turn.
pub(crate) struct Calls {
    /// Those that are not over, in the model's order.
    waiting: VecDeque<Waiting>,
    /// What the model reads of those that are.
    pub(crate) said: Vec<String>,
    /// The most bytes of each.
    most: usize,
}

enum Waiting {
    Call { id: u32, running: Result<Running, tools::Error> },
    Refused(String),
}

impl Calls {
    /// Has the tools begin. The calls are numbered from `first` on.
    pub(crate) fn start(wanted: Vec<Wanted>, first: u32, most: usize) -> Self {
        let mut id = first;
        let start = |wanted| match wanted {
            Wanted::Call { tool, arguments } => {
                let call = Waiting::Call { id, running: tools::start(&tool, &arguments) };
                id = id.saturating_add(1);
                call
            }
            Wanted::Refused(why) => Waiting::Refused(why),
        };
        Self { waiting: wanted.into_iter().map(start).collect(), said: Vec::new(), most }
    }

    /// Waits for what is heard next. The others go on meanwhile. None: all are over.
    pub(crate) fn hear(&mut self) -> Option<Heard> {
        loop {
            let (id, said) = match self.waiting.front()? {
                Waiting::Refused(why) => {
                    self.said.push(why.clone());
                    self.waiting.pop_front();
                    continue;
                }
                Waiting::Call { id, running: Ok(running) } => match listen(running) {
                    Ok(progress) => return Some(Heard::Progress(*id, progress)),
                    Err(said) => (*id, said),
                },
                Waiting::Call { id, running: Err(error) } => (*id, failed(error)),
            };
            self.waiting.pop_front();
            let text = cut(said.text, self.most);
            self.said.push(text.clone());
            return Some(Heard::Returned(Returned { id, text, outcome: said.outcome }));
        }
    }
}

/// What a call came to, whatever its length.
struct Said {
    text: String,
    outcome: Outcome,
}

/// Waits for how far a call has got, or for what it came to.
fn listen(running: &Running) -> Result<Progress, Said> {
    loop {
        match running.next() {
            Ok(Some(Event::Progress(progress))) => return Ok(progress),
            Ok(Some(Event::Answer(answer))) => return Err(read(&answer)),
            // What a tool logs is not for the model, and nobody here can be asked.
            Ok(Some(Event::Log(_) | Event::Ask(_))) => {}
            Ok(Some(Event::Contents(_) | Event::Filled(_) | Event::Completion(_)) | None) => {
                let text = "the tool gave no answer".to_owned();
                return Err(Said { text, outcome: Outcome::Failed(Failure::Broken) });
            }
            Err(error) => return Err(failed(&error)),
        }
    }
}

fn failed(error: &tools::Error) -> Said {
    let (text, failure): (&str, _) = match error {
        tools::Error::UnknownTool(why) | tools::Error::InvalidArguments(why) => (why, Failure::Wrong),
        tools::Error::Failed(why) | tools::Error::Limit(why) => (why, Failure::Broken),
        tools::Error::Busy(why) => (why, Failure::Busy),
        tools::Error::Needs(_) => ("this tool asks whoever calls it, and nobody can be asked here", Failure::Broken),
    };
    Said { text: format!("Error: {text}"), outcome: Outcome::Failed(failure) }
}

/// What a model can read of an answer.
fn read(answer: &Answer) -> Said {
    let hidden = |kind: &str, bytes: &[u8]| format!("[{kind}, {} bytes, which cannot be shown]", bytes.len());
    let part = |content: &Content| match content {
        Content::Text(text) => text.clone(),
        Content::Image(media) | Content::Audio(media) => hidden(&media.mime_type, &media.data),
        Content::Link(link) => link.uri.clone(),
        Content::Resource(Contents { uri, mime_type, body }) => match body {
            Body::Text(text) => text.clone(),
            Body::Bytes(bytes) => hidden(mime_type.as_deref().unwrap_or(uri), bytes),
        },
    };
    let parts: Vec<String> = answer.content.iter().map(part).collect();
    let text = parts.join("\n");
    match answer.is_error {
        true => Said { text: format!("Error: {text}"), outcome: Outcome::Declined },
        false => Said { text, outcome: Outcome::Answered },
    }
}

/// The beginning of a text that is too long, and how much there was.
fn cut(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let end = text.floor_char_boundary(most);
    format!("{}\n[cut: {} bytes in all]", text.get(..end).unwrap_or_default(), text.len())
}

#[cfg(test)]
mod tests {
    use nala_sdk::tools::Media;

    use super::*;

    #[test]
    fn what_is_too_long_is_cut_between_characters_and_says_so() {
        assert_eq!(cut("abc".to_owned(), 3), "abc");
        assert_eq!(cut("aßc".to_owned(), 2), "a\n[cut: 4 bytes in all]");
    }

    #[test]
    fn the_model_reads_texts_and_is_told_of_the_rest() {
        let mut answer = Answer::text("a");
        answer.content.push(Content::Image(Media { data: vec![0; 3], mime_type: "image/png".to_owned() }));
        let said = read(&answer);
        assert_eq!(said.text, "a\n[image/png, 3 bytes, which cannot be shown]");
        assert!(!said.outcome.is_error());
        let said = read(&Answer::error("no file"));
        assert_eq!((said.text.as_str(), said.outcome), ("Error: no file", Outcome::Declined));
    }

    #[test]
    fn what_keeps_a_tool_from_answering_is_told_by_its_kind() {
        for (error, failure) in [
            (tools::Error::UnknownTool("x".to_owned()), Failure::Wrong),
            (tools::Error::InvalidArguments("x".to_owned()), Failure::Wrong),
            (tools::Error::Limit("x".to_owned()), Failure::Broken),
            (tools::Error::Busy("x".to_owned()), Failure::Busy),
        ] {
            let said = failed(&error);
            assert_eq!((said.text.as_str(), said.outcome), ("Error: x", Outcome::Failed(failure)));
        }
    }

    #[test]
    fn a_call_that_is_not_made_is_read_in_its_place_and_counts_for_none() {
        let refused = ["a", "b"].map(|why| Wanted::Refused(why.to_owned()));
        let mut calls = Calls::start(refused.to_vec(), 1, 100);
        assert!(calls.hear().is_none());
        assert_eq!(calls.said, ["a", "b"]);
    }
}
