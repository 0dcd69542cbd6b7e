//! Tools that ask whoever calls them.

use nala_sdk::tools::{self, Abilities, Answer, Error, Inquiry, Question, Refusal};
use serde_json::{Value, json};

use crate::{Known, NOTHING};

const PROMPT: &str = r#"{"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}"#;
const MESSAGE: &str = r#"{"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}"#;

const fn asking(name: &'static str, call: fn(&Value) -> Result<Answer, Error>) -> Known {
    Known { name, description: "Asks whoever calls it.", schema: NOTHING, call }
}

pub(crate) const TOOLS: &[Known] = &[
    Known { schema: PROMPT, ..asking("test_sampling", sampling) },
    Known { schema: MESSAGE, ..asking("test_elicitation", elicitation) },
    asking("test_elicitation_sep1034_defaults", defaults),
    asking("test_elicitation_sep1330_enums", enums),
    asking("test_streaming_elicitation", name),
    asking("test_missing_capability", capital),
    asking("test_input_required_result_elicitation", name),
    asking("test_input_required_result_sampling", capital),
    asking("test_input_required_result_list_roots", roots),
    asking("test_input_required_result_request_state", confirmed),
    asking("test_input_required_result_tampered_state", confirmed),
    asking("test_input_required_result_multiple_inputs", several),
    asking("test_input_required_result_multi_round", rounds),
    asking("test_input_required_result_capabilities", able),
];

/// Asks, and gives the replies as JSON. Whoever cannot be asked is told so.
pub(crate) fn ask(questions: &[Question]) -> Result<Vec<Value>, Error> {
    match tools::ask(questions) {
        Ok(replies) => Ok(replies.iter().map(|reply| serde_json::from_str(reply).unwrap_or_default()).collect()),
        Err(Refusal::Unable(abilities)) => Err(Error::Needs(abilities)),
        Err(Refusal::Invalid(why) | Refusal::Failed(why)) => Err(Error::Failed(why)),
    }
}

fn form(key: &str, message: &str, properties: Value) -> Question {
    let required: Vec<&String> = properties.as_object().map(|all| all.keys().collect()).unwrap_or_default();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    Question::form(key, message, &schema.to_string())
}

/// A form with one text.
pub(crate) fn text(key: &str, message: &str, name: &str) -> Question {
    form(key, message, json!({ name: { "type": "string" } }))
}

fn sample(key: &str, said: &str, most: u32) -> Question {
    let message = json!({ "role": "user", "content": { "type": "text", "text": said } });
    Question::new(key, Inquiry::Sampling, json!({ "messages": [message], "maxTokens": most }).to_string())
}

fn folders() -> Question {
    Question::new("client_roots", Inquiry::Roots, "{}")
}

fn argument<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, Error> {
    let text = arguments.get(name).and_then(Value::as_str);
    text.ok_or_else(|| Error::InvalidArguments(format!("`{name}` has to be a string")))
}

fn first(question: Question) -> Result<Value, Error> {
    Ok(ask(&[question])?.into_iter().next().unwrap_or_default())
}

fn sampling(arguments: &Value) -> Result<Answer, Error> {
    let reply = first(sample("sampling", argument(arguments, "prompt")?, 100))?;
    let text = reply.pointer("/content/text").and_then(Value::as_str).unwrap_or("No response");
    Ok(Answer::text(format!("LLM response: {text}")))
}

fn elicitation(arguments: &Value) -> Result<Answer, Error> {
    let properties = json!({
        "username": { "type": "string", "description": "User's response" },
        "email": { "type": "string", "description": "User's email address" },
    });
    let reply = first(form("elicitation", argument(arguments, "message")?, properties))?;
    Ok(Answer::text(format!("User response: {reply}")))
}

fn completed(reply: &Value) -> Answer {
    let action = reply.get("action").and_then(Value::as_str).unwrap_or("cancel");
    let content = reply.get("content").cloned().unwrap_or_else(|| json!({}));
    Answer::text(format!("Elicitation completed: action={action}, content={content}"))
}

fn defaults(_: &Value) -> Result<Answer, Error> {
    let schema = json!({ "type": "object", "required": [], "properties": {
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    } });
    let question = Question::form("defaults", "Please review the default values", &schema.to_string());
    Ok(completed(&first(question)?))
}

fn enums(_: &Value) -> Result<Answer, Error> {
    let titled = |choice: &str| {
        let one = |n: u32, word: &str| json!({ "const": format!("value{n}"), "title": format!("{word} {choice}") });
        json!([one(1, "First"), one(2, "Second"), one(3, "Third")])
    };
    let schema = json!({ "type": "object", "required": [], "properties": {
        "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2", "option3"] } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    } });
    let question = Question::form("enums", "Please choose", &schema.to_string());
    Ok(completed(&first(question)?))
}

fn name(_: &Value) -> Result<Answer, Error> {
    let reply = first(text("user_name", "What is your name?", "name"))?;
    let name = reply.pointer("/content/name").and_then(Value::as_str).unwrap_or("whoever you are");
    Ok(Answer::text(format!("Hello, {name}!")))
}

fn capital(_: &Value) -> Result<Answer, Error> {
    let reply = first(sample("capital_question", "What is the capital of France?", 100))?;
    Ok(Answer::text(reply.pointer("/content/text").and_then(Value::as_str).unwrap_or("nothing").to_owned()))
}

fn roots(_: &Value) -> Result<Answer, Error> {
    let reply = first(folders())?;
    Ok(Answer::text(format!("Roots: {}", reply.get("roots").cloned().unwrap_or_default())))
}

fn confirmed(_: &Value) -> Result<Answer, Error> {
    let reply = first(form("confirm", "Please confirm", json!({ "ok": { "type": "boolean" } })))?;
    Ok(Answer::text(format!("state-ok: {reply}")))
}

fn several(_: &Value) -> Result<Answer, Error> {
    let questions =
        [text("user_name", "What is your name?", "name"), sample("greeting", "Generate a greeting", 50), folders()];
    Ok(Answer::text(Value::from(ask(&questions)?).to_string()))
}

fn rounds(_: &Value) -> Result<Answer, Error> {
    let name = first(text("step1", "Step 1: What is your name?", "name"))?;
    let color = first(text("step2", "Step 2: What is your favorite color?", "color"))?;
    Ok(Answer::text(format!("{name} {color}")))
}

/// Asks what can be asked.
fn able(_: &Value) -> Result<Answer, Error> {
    let all = [
        (Abilities::ELICIT_FORM, text("user_name", "What is your name?", "name")),
        (Abilities::SAMPLE, sample("greeting", "Generate a greeting", 50)),
        (Abilities::ROOTS, folders()),
    ];
    let questions = |lacking: Abilities| -> Vec<Question> {
        all.iter().filter(|(ability, _)| !lacking.contains(*ability)).map(|(_, question)| question.clone()).collect()
    };
    let replies = match ask(&questions(Abilities::empty())) {
        Err(Error::Needs(lacking)) => ask(&questions(lacking))?,
        other => other?,
    };
    Ok(Answer::text(Value::from(replies).to_string()))
}
