//! What a component is asked, and what it says.

use super::bindings::nala::tools::registry::{Event, Request};
use super::bindings::nala::tools::types::{
    Answer, Body, Completion, Content, Contents, Error, Filled, Message, Subject, Tool,
};

/// What a component is asked.
#[derive(Debug)]
pub(super) enum Job {
    Call { tool: String, arguments: String },
    Read { uri: String },
    Fill { prompt: String, arguments: Vec<(String, String)> },
    Complete { subject: Subject, name: String, beginning: String },
}

impl From<Request> for Job {
    fn from(request: Request) -> Self {
        match request {
            Request::Call((tool, arguments)) => Self::Call { tool, arguments },
            Request::Read(uri) => Self::Read { uri },
            Request::Fill((prompt, arguments)) => Self::Fill { prompt, arguments },
            Request::Complete((subject, name, beginning)) => Self::Complete { subject, name, beginning },
        }
    }
}

impl Job {
    /// What it is about, for logs and errors.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Call { tool, .. } => tool,
            Self::Read { uri } => uri,
            Self::Fill { prompt, .. } => prompt,
            Self::Complete { name, .. } => name,
        }
    }

    /// Its bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Call { tool, arguments } => tool.len().saturating_add(arguments.len()),
            Self::Read { uri } => uri.len(),
            Self::Fill { prompt, arguments } => {
                let pairs = arguments.iter().map(|(name, value)| name.len().saturating_add(value.len()));
                pairs.fold(prompt.len(), usize::saturating_add)
            }
            Self::Complete { subject: Subject::Prompt(subject) | Subject::Pattern(subject), name, beginning } => {
                subject.len().saturating_add(name.len()).saturating_add(beginning.len())
            }
        }
    }
}

/// What a component says to what it was asked.
#[derive(Debug)]
pub(crate) enum Said {
    Answer(Answer),
    Contents(Vec<Contents>),
    Filled(Filled),
    Completion(Completion),
}

impl From<Said> for Event {
    fn from(said: Said) -> Self {
        match said {
            Said::Answer(answer) => Self::Answer(answer),
            Said::Contents(contents) => Self::Contents(contents),
            Said::Filled(filled) => Self::Filled(filled),
            Said::Completion(completion) => Self::Completion(completion),
        }
    }
}

/// The most values of a completion, as the Model Context Protocol has it.
const MOST_VALUES: usize = 100;

impl Said {
    /// The bytes of it.
    pub(super) fn bytes(&self) -> usize {
        let sum = |all: &mut dyn Iterator<Item = usize>| all.fold(0, usize::saturating_add);
        match self {
            Self::Answer(answer) => {
                let structured = answer.structured.as_ref().map_or(0, String::len);
                sum(&mut answer.content.iter().map(of_content)).saturating_add(structured)
            }
            Self::Contents(contents) => sum(&mut contents.iter().map(of_contents)),
            Self::Filled(Filled { description, messages }) => {
                let messages = sum(&mut messages.iter().map(|Message { content, .. }| of_content(content)));
                messages.saturating_add(description.as_ref().map_or(0, String::len))
            }
            Self::Completion(Completion { values, .. }) => sum(&mut values.iter().map(String::len)),
        }
    }

    /// The same if it is what was promised, as far as that can be seen without running a
    /// schema.
    pub(super) fn checked(self, tools: &[Tool], asked: &str, most: u32) -> Result<Self, Error> {
        let bytes = self.bytes();
        if bytes > most as usize {
            return Err(Error::Limit(format!(
                "`{asked}` answered {bytes} bytes; at most {most} are allowed (`call_bytes`)"
            )));
        }
        match self {
            Self::Answer(answer) => check_answer(answer, tools, asked).map(Self::Answer),
            Self::Completion(mut completion) if completion.values.len() > MOST_VALUES => {
                completion.values.truncate(MOST_VALUES);
                Ok(Self::Completion(Completion { has_more: true, ..completion }))
            }
            Self::Contents(_) | Self::Filled(_) | Self::Completion(_) => Ok(self),
        }
    }
}

fn of_content(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Image(media) | Content::Audio(media) => media.data.len().saturating_add(media.mime_type.len()),
        Content::Resource(contents) => of_contents(contents),
        Content::Link(link) => [&link.uri, &link.name]
            .into_iter()
            .chain(&link.description)
            .chain(&link.mime_type)
            .map(String::len)
            .fold(0, usize::saturating_add),
    }
}

fn of_contents(Contents { uri, mime_type, body }: &Contents) -> usize {
    let body = match body {
        Body::Text(text) => text.len(),
        Body::Bytes(bytes) => bytes.len(),
    };
    body.saturating_add(uri.len()).saturating_add(mime_type.as_ref().map_or(0, String::len))
}

fn check_answer(answer: Answer, tools: &[Tool], tool: &str) -> Result<Answer, Error> {
    if let Some(text) = &answer.structured
        && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text)
    {
        return Err(Error::Failed(format!("`{tool}` answered something as JSON that is none: {error}")));
    }
    let promises = tools.iter().any(|known| known.name == tool && known.output_schema.is_some());
    if promises && !answer.is_error && answer.structured.is_none() {
        return Err(Error::Failed(format!("`{tool}` promises a structured answer, and gave none")));
    }
    Ok(answer)
}
