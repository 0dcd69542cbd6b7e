//! How a call ends: with a result, or with why there is none.

use nala_sdk::tools::{Answer, Error, Event};
use serde_json::{Value, json};

use crate::era::{Client, Era};
use crate::settings::Settings;
use crate::wire::{Call, Failure};
use crate::write;

/// For how long lists are as they were told, in milliseconds: they change when something
/// is deployed.
const LISTS: u32 = 60_000;
/// The code of older versions for a resource that is not there.
const NO_RESOURCE: i32 = -32002;

/// Writes results as one version of the protocol has them.
#[derive(Debug)]
pub(crate) struct Finish {
    is_modern: bool,
    is_tool: bool,
    /// The resource that is read.
    uri: Option<Value>,
    info: Value,
}

/// What a client may keep a result for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Not at all.
    No,
    /// For itself, as long as lists are kept.
    List,
    /// For itself, and only until the next question.
    Once,
}

impl Finish {
    pub(crate) fn new(call: &Call, client: &Client, settings: &Settings) -> Self {
        Self {
            is_modern: client.era == Era::Modern,
            is_tool: call.method == "tools/call",
            uri: (call.method == "resources/read").then(|| call.params.get("uri").cloned()).flatten(),
            info: settings.info(),
        }
    }

    /// The result of a call that came to its end.
    pub(crate) fn result(&self, event: &Event) -> Value {
        match event {
            Event::Answer(answer) => self.complete(self.answer(answer), Keep::No),
            Event::Contents(contents) => self.complete(write::read(contents), Keep::Once),
            Event::Filled(filled) => self.complete(write::filled(filled), Keep::No),
            Event::Completion(completion) => self.complete(write::completion(completion), Keep::No),
            Event::Progress(_) | Event::Log(_) | Event::Ask(_) => Value::Null,
        }
    }

    /// What a tool answers. Older versions have objects alone for what is structured, and
    /// what cannot be read is only told as text.
    fn answer(&self, answer: &Answer) -> Value {
        let mut result = write::answer(answer);
        if let Value::Object(result) = &mut result {
            let is_told = result.get("structuredContent").is_some_and(|one| match self.is_modern {
                true => !one.is_null(),
                false => one.is_object(),
            });
            if !is_told {
                result.remove("structuredContent");
            }
        }
        result
    }

    /// What went wrong: for a tool mostly a result that a model can learn from.
    pub(crate) fn failed(&self, error: &Error) -> Result<Value, Failure> {
        let in_words = |why: &str| Ok(self.complete(write::answer(&Answer::error(why)), Keep::No));
        match error {
            Error::UnknownTool(why) => {
                let failure = Failure::invalid_params(why.as_str());
                let Some(uri) = &self.uri else { return Err(failure) };
                let code = if self.is_modern { failure.code } else { NO_RESOURCE };
                Err(Failure { code, ..failure }.with_data(json!({ "uri": uri })))
            }
            Error::Needs(abilities) if self.is_modern => Err(Failure::lacks(write::capabilities(*abilities))),
            Error::Needs(abilities) => {
                let lacking = write::capabilities(*abilities);
                let why = format!("this needs capabilities that the client does not have: {lacking}");
                if self.is_tool { in_words(&why) } else { Err(Failure::invalid_params(why)) }
            }
            Error::InvalidArguments(why) | Error::Failed(why) | Error::Limit(why) | Error::Busy(why)
                if self.is_tool =>
            {
                in_words(why)
            }
            Error::InvalidArguments(why) => Err(Failure::invalid_params(why.as_str())),
            Error::Failed(why) | Error::Limit(why) | Error::Busy(why) => Err(Failure::internal(why.as_str())),
        }
    }

    /// A result that is all there is.
    pub(crate) fn complete(&self, mut result: Value, keep: Keep) -> Value {
        if !self.is_modern {
            return result;
        }
        if let Value::Object(result) = &mut result {
            result.insert("resultType".to_owned(), "complete".into());
            if keep != Keep::No {
                let time = if keep == Keep::List { LISTS } else { 0 };
                result.insert("ttlMs".to_owned(), time.into());
                // What is there depends on whose key it is.
                result.insert("cacheScope".to_owned(), "private".into());
            }
        }
        self.identified(result)
    }

    /// A result that says who the server is.
    pub(crate) fn identified(&self, mut result: Value) -> Value {
        if let Value::Object(result) = &mut result {
            let meta = json!({ "io.modelcontextprotocol/serverInfo": self.info });
            result.insert("_meta".to_owned(), meta);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use nala_sdk::tools::Abilities;
    use serde_json::Map;

    use super::*;

    fn finish(era: Era, method: &str) -> Finish {
        let params = Map::from_iter([("uri".to_owned(), json!("a://b"))]);
        let call = Call { id: json!(1), method: method.to_owned(), params };
        let client = Client { era, abilities: Abilities::empty(), log: None, progress: None };
        Finish::new(&call, &client, &Settings::default())
    }

    const LEGACY: Era = Era::Legacy { session: None };

    #[test]
    fn what_a_tool_does_wrong_is_for_the_model_to_read() {
        let all = [Error::InvalidArguments("why".into()), Error::Limit("why".into()), Error::Failed("why".into())];
        for error in all {
            let result = finish(LEGACY, "tools/call").failed(&error).unwrap();
            assert_eq!(result, json!({ "content": [{ "type": "text", "text": "why" }], "isError": true }));
            let result = finish(Era::Modern, "tools/call").failed(&error).unwrap();
            assert_eq!((&result["isError"], &result["resultType"]), (&json!(true), &json!("complete")));
            assert!(finish(Era::Modern, "prompts/get").failed(&error).is_err());
        }
    }

    #[test]
    fn what_is_structured_is_told_where_it_can_be_read() {
        let told = |era, json: &str| {
            let answer = Event::Answer(Answer::structured(json));
            finish(era, "tools/call").result(&answer).get("structuredContent").cloned()
        };
        assert_eq!(told(LEGACY, "{\"a\": 1}"), Some(json!({ "a": 1 })));
        assert_eq!((told(LEGACY, "[1]"), told(Era::Modern, "[1]")), (None, Some(json!([1]))));
        assert_eq!(told(Era::Modern, "1e400"), None, "it is in the text");
    }

    #[test]
    fn what_is_not_there_is_told_as_each_version_has_it() {
        let unknown = Error::UnknownTool("none".into());
        let failure = finish(Era::Modern, "resources/read").failed(&unknown).unwrap_err();
        assert_eq!((failure.code, failure.data), (-32602, Some(json!({ "uri": "a://b" }))));
        assert_eq!(finish(LEGACY, "resources/read").failed(&unknown).unwrap_err().code, -32002);
        assert_eq!(finish(LEGACY, "tools/call").failed(&unknown).unwrap_err().code, -32602);
    }

    #[test]
    fn a_client_learns_what_it_would_have_to_be_asked() {
        let needs = Error::Needs(Abilities::SAMPLE);
        let failure = finish(Era::Modern, "tools/call").failed(&needs).unwrap_err();
        assert_eq!((failure.status, failure.code), (400, -32021));
        assert_eq!(failure.data, Some(json!({ "requiredCapabilities": { "sampling": {} } })));
        assert_eq!(finish(LEGACY, "tools/call").failed(&needs).unwrap()["isError"], true);
    }
}
