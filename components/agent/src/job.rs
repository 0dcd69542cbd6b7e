//! What an agent is asked.

use agent_loop::First;
use nala_sdk::Error;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a client wants.
#[derive(Debug)]
pub(crate) enum Asked {
    /// A new run.
    New(Job),
    /// One that was begun before, and is kept, to go on.
    Resume(Resume),
}

/// See [`Asked::Resume`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resume {
    /// Its name, as it was told when it was begun.
    pub(crate) resume: String,
    /// Whether each step is told as it comes.
    #[serde(default)]
    pub(crate) stream: bool,
}

impl Asked {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Error> {
        let is_resumed =
            serde_json::from_slice::<Map<String, Value>>(body).is_ok_and(|body| body.contains_key("resume"));
        if !is_resumed {
            return Job::read(body).map(Self::New);
        }
        let refuse = |error| Error::Status(400, format!("send {{\"resume\": \"…\"}} alone or with `stream`: {error}"));
        serde_json::from_slice(body).map(Self::Resume).map_err(refuse)
    }

    pub(crate) fn is_streamed(&self) -> bool {
        match self {
            Self::New(job) => job.stream,
            Self::Resume(resume) => resume.stream,
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    /// What is to be done.
    pub(crate) input: String,
    /// Whether each step is told as it comes.
    #[serde(default)]
    pub(crate) stream: bool,
    /// JSON schema of the answer, an object. Without it the answer is a text.
    #[serde(default)]
    pub(crate) answer_schema: Option<Map<String, Value>>,
    /// Tools that are called first, one a turn, in this order: the model chooses what it
    /// asks them, and is free after that.
    #[serde(default)]
    pub(crate) call_first: Vec<First>,
    /// The most turns of the model; the operator's own bound holds as well.
    #[serde(default)]
    pub(crate) max_steps: Option<u32>,
    /// The most tokens that it writes.
    #[serde(default)]
    pub(crate) max_tokens: Option<u32>,
}

impl Job {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Error> {
        let refuse = |why: String| Error::Status(400, why);
        let job: Self = serde_json::from_slice(body)
            .map_err(|error| refuse(format!("send {{\"input\": \"…\"}} as JSON: {error}")))?;
        if job.input.trim().is_empty() {
            return Err(refuse("`input` is empty; say what is to be done".to_owned()));
        }
        let is_object = |schema: &Map<String, Value>| schema.get("type").and_then(Value::as_str) == Some("object");
        if job.answer_schema.as_ref().is_some_and(|schema| !is_object(schema)) {
            return Err(refuse("`answer_schema` has to say \"type\": \"object\"".to_owned()));
        }
        if job.max_steps == Some(0) || job.max_tokens == Some(0) {
            return Err(refuse("`max_steps` and `max_tokens` are at least 1".to_owned()));
        }
        Ok(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_needs_something_to_do_and_bounds_that_can_be_kept() {
        let job = Job::read(br#"{"input": "a", "stream": true, "max_steps": 3}"#).unwrap();
        assert_eq!((job.input.as_str(), job.stream, job.max_steps, job.max_tokens), ("a", true, Some(3), None));
        let first =
            Job::read(br#"{"input": "a", "call_first": ["b", {"tool": "c", "arguments": {"type": "object"}}]}"#);
        let first = first.unwrap().call_first;
        assert_eq!((first[0].tool(), first[0].arguments().is_none()), ("b", true));
        assert_eq!((first[1].tool(), first[1].arguments().is_some()), ("c", true));
        let asked = Asked::read(br#"{"resume": "a", "stream": true}"#).unwrap();
        assert!(asked.is_streamed() && matches!(&asked, Asked::Resume(resume) if resume.resume == "a"));
        assert!(matches!(Asked::read(br#"{"input": "a"}"#), Ok(Asked::New(_))));
        let both = Asked::read(br#"{"input": "a", "resume": "b"}"#);
        assert!(matches!(both, Err(Error::Status(400, why)) if why.contains("unknown field `input`")));
        for (body, said) in [
            ("", "as JSON"),
            ("{}", "missing field `input`"),
            (r#"{"input": " "}"#, "is empty"),
            (r#"{"input": "a", "inptu": "b"}"#, "unknown field `inptu`"),
            (r#"{"input": "a", "answer_schema": {}}"#, "\"type\": \"object\""),
            (r#"{"input": "a", "max_steps": 0}"#, "at least 1"),
            (r#"{"input": "a", "max_tokens": -1}"#, "as JSON"),
        ] {
            let Err(Error::Status(400, why)) = Job::read(body.as_bytes()) else { panic!("{body}") };
            assert!(why.contains(said), "{body}: {why}");
        }
    }
}
