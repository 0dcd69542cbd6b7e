//! What is kept of a run, so that it can go on after a restart.

use agent_loop::Usage;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nala_sdk::Error;
use nala_sdk::llm::Token;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::job::Job;
use crate::run::Reason;
use crate::store;

/// The shape of a record. One of another shape is not read.
const VERSION: u32 = 1;

/// A run between two turns, or at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    version: u32,
    /// The model that read the tokens.
    pub(crate) model: String,
    pub(crate) job: Job,
    /// All that the session holds, in base64: little-endian numbers of 32 bits.
    tokens: String,
    pub(crate) usage: Usage,
    /// Where it is over.
    pub(crate) end: Option<Over>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Over {
    pub(crate) answer: Value,
    pub(crate) reason: Reason,
}

impl Record {
    pub(crate) fn new(model: String, job: Job, tokens: &[Token], usage: Usage, end: Option<Over>) -> Self {
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
        Self { version: VERSION, model, job, tokens: STANDARD.encode(bytes), usage, end }
    }

    pub(crate) fn tokens(&self) -> Vec<Token> {
        let bytes = STANDARD.decode(&self.tokens).unwrap_or_default();
        let (tokens, _) = bytes.as_chunks::<4>();
        tokens.iter().map(|token| Token::from_le_bytes(*token)).collect()
    }
}

/// Where a run is kept: its name in the store `default` of the component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunId(String);

impl RunId {
    /// A new one, which nobody can guess. None: the component has no store.
    pub(crate) fn new() -> Option<Self> {
        store::is_there().then(|| Self(store::random()))
    }

    /// One that a client names.
    pub(crate) fn read(text: &str) -> Result<Self, Error> {
        let is_one = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let wrong = || Error::Status(400, "`resume` is the `run` of an earlier answer".to_owned());
        if is_one { Ok(Self(text.to_owned())) } else { Err(wrong()) }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Other keys of the store may be the operator's.
    fn key(&self) -> String {
        format!("agent-run:{}", self.0)
    }

    pub(crate) fn keep(&self, record: &Record) -> Result<(), Error> {
        let bytes = serde_json::to_vec(record).map_err(|error| Error::Status(500, error.to_string()))?;
        store::set(&self.key(), &bytes).map_err(|why| Error::Status(503, format!("the run cannot be kept: {why}")))
    }

    /// What is kept of it.
    pub(crate) fn load(&self) -> Result<Record, Error> {
        let kept = store::get(&self.key()).map_err(|why| Error::Status(503, format!("runs cannot be read: {why}")))?;
        let kept = kept.ok_or_else(|| Error::Status(404, "there is no such run".to_owned()))?;
        match serde_json::from_slice::<Record>(&kept) {
            Ok(record) if record.version == VERSION => Ok(record),
            _ => Err(Error::Status(409, "the run was kept by another version of this agent".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let job = Job::read(br#"{"input": "a", "call_first": ["b", {"tool": "c", "arguments": {}}], "max_steps": 3}"#);
        let tokens = [0, 1, 0x0102_0304, u32::MAX];
        let end = Some(Over { answer: "x".into(), reason: Reason::Answered });
        let record = Record::new("m".to_owned(), job.unwrap(), &tokens, Usage::default(), end);
        let text = serde_json::to_string(&record).unwrap();
        let read: Record = serde_json::from_str(&text).unwrap();
        assert_eq!((&read, read.tokens()), (&record, tokens.to_vec()));
    }

    #[test]
    fn names_of_runs_are_what_was_given_out() {
        assert!(RunId::read(&"0123456789abcdef".repeat(2)).is_ok());
        for wrong in ["", "x", &"A".repeat(32), &"0".repeat(33), "../../../../../../../etc/passwd/"] {
            assert!(matches!(RunId::read(wrong), Err(Error::Status(400, _))), "{wrong}");
        }
    }
}
