//! What tools ask of whoever called them.
//!
//! Without sessions, a question ends the call: the client is told what is asked, gets what
//! was replied so far under a seal, and calls again with both. With a session, the question
//! goes to the client while the call goes on, and the reply comes with a request of its own,
//! which an inbox brings here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nala_sdk::relay;
use nala_sdk::tools::Question;
use serde_json::{Map, Value, json};

use crate::wire::{Call, Failure};
use crate::write;

/// For how long a client may think about a question.
const GOOD_FOR: Duration = Duration::from_secs(60 * 60);

/// The keys of the parameters.
const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// What was replied so far.
#[derive(Debug, Default)]
pub(crate) struct Known {
    replies: Map<String, Value>,
    about: String,
}

impl Known {
    /// Reads what a client brings along.
    pub(crate) fn read(call: &Call) -> Result<Self, Failure> {
        let about = about(call);
        let mut replies = Map::new();
        match call.params.get(STATE) {
            None => {}
            Some(Value::String(state)) => replies = opened(state, &about, now())?,
            Some(_) => return Err(Failure::invalid_params("`requestState` is a string")),
        }
        match call.params.get(RESPONSES) {
            None => {}
            Some(Value::Object(new)) => {
                if let Some((key, _)) = new.iter().find(|(_, reply)| !reply.is_object()) {
                    return Err(Failure::invalid_params(format!(
                        "`inputResponses`: what is said to {key:?} is no object"
                    )));
                }
                replies.extend(new.clone());
            }
            Some(_) => return Err(Failure::invalid_params("`inputResponses` is an object")),
        }
        Ok(Self { replies, about })
    }

    /// The replies to these, if there is one to each.
    pub(crate) fn replies(&self, questions: &[Question]) -> Option<Vec<String>> {
        questions.iter().map(|question| Some(self.replies.get(&question.key)?.to_string())).collect()
    }

    /// The result that asks for what is missing.
    pub(crate) fn required(&self, questions: &[Question]) -> Value {
        let missing = questions.iter().filter(|question| !self.replies.contains_key(&question.key));
        let requests: Map<String, Value> = missing.map(|question| (question.key.clone(), asked(question))).collect();
        let until = now() + GOOD_FOR.as_secs();
        let state = json!({ "replies": self.replies, "until": until });
        json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": relay::seal(&state.to_string(), &self.about),
        })
    }
}

/// A question as a request, without an id.
pub(crate) fn asked(question: &Question) -> Value {
    let parameters: Value = serde_json::from_str(&question.parameters).unwrap_or_else(|_| json!({}));
    json!({ "method": write::method(question.kind), "params": parameters })
}

/// What was replied before, as it was sealed.
fn opened(state: &str, about: &str, now: u64) -> Result<Map<String, Value>, Failure> {
    let refused = || Failure::invalid_params("`requestState` was not given out for this request, or was changed");
    let state = relay::unseal(state, about).ok_or_else(refused)?;
    let mut state: Value = serde_json::from_str(&state).map_err(|_| refused())?;
    if state.get("until").and_then(Value::as_u64).is_none_or(|until| until < now) {
        return Err(Failure::invalid_params("`requestState` is too old; begin again without it"));
    }
    match state.get_mut("replies").map(Value::take) {
        Some(Value::Object(replies)) => Ok(replies),
        _ => Err(refused()),
    }
}

/// What a state is good for: the same request alone.
fn about(call: &Call) -> String {
    let own = call.params.iter().filter(|(key, _)| !["_meta", RESPONSES, STATE].contains(&key.as_str()));
    let own: Map<String, Value> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
    format!("{} {}", call.method, Value::Object(own))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use nala_sdk::tools::Inquiry;

    use super::*;

    fn call(params: Value) -> Call {
        let Value::Object(params) = params else { panic!("{params}") };
        Call { id: json!(1), method: "tools/call".to_owned(), params }
    }

    fn question(key: &str) -> Question {
        Question { key: key.to_owned(), kind: Inquiry::Elicitation, parameters: "{\"message\": \"?\"}".to_owned() }
    }

    #[test]
    fn replies_are_told_by_their_questions() {
        let known = Known::read(&call(json!({ "name": "a", RESPONSES: { "x": { "action": "accept" } } }))).unwrap();
        assert_eq!(known.replies(&[question("x")]).unwrap(), ["{\"action\":\"accept\"}"]);
        assert_eq!(known.replies(&[question("x"), question("y")]), None);
        assert_eq!(asked(&question("x")), json!({ "method": "elicitation/create", "params": { "message": "?" } }));
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for wrong in [json!(null), json!(1), json!([]), json!({ "x": 1 }), json!({ "x": null })] {
            let refused = Known::read(&call(json!({ RESPONSES: wrong }))).unwrap_err();
            assert_eq!(refused.code, -32602);
        }
        assert!(Known::read(&call(json!({ STATE: 1 }))).is_err());
    }

    #[test]
    fn a_state_is_about_the_request_without_what_comes_later() {
        let first = about(&call(json!({ "name": "a", "arguments": { "b": 1 }, "_meta": {} })));
        let second = about(&call(json!({ "name": "a", "arguments": { "b": 1 }, RESPONSES: {}, STATE: "s" })));
        assert_eq!(first, second);
        assert_ne!(first, about(&call(json!({ "name": "a", "arguments": { "b": 2 } }))));
    }
}
