//! ReAct: the model thinks, acts, observes, and thinks again, in one session.
//!
//! A thought and an action are one run that a grammar holds to its form; what the tool
//! says is appended behind it. A client would send all of that again for each step.
//! `computed` in the answer says how many tokens were read: each one once.
//!
//! Needs tools (`tools = ["calculator"]` in the manifest) whose first argument is a text.
//!
//! ```sh
//! curl 127.0.0.1:3000/react -d '{"question": "What is 37 * 43?", "steps": 3}'
//! ```

use nala_sdk::chat::{self, Message};
use nala_sdk::http::{Request, Response};
use nala_sdk::llm::{GenerateOptions, Grammar, Model, Session};
use nala_sdk::tools::{self, Content, Tool};
use nala_sdk::{Error, handler};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// By which the model answers.
const FINISH: &str = "finish";

/// What is asked for.
#[derive(Deserialize)]
struct Job {
    question: String,
    /// Actions at the most. The last one answers.
    steps: u32,
}

/// What came of it.
#[derive(Default, Serialize)]
struct Report {
    answer: Option<String>,
    steps: Vec<Step>,
    /// Tokens that were read, and not written by the model.
    computed: u32,
}

#[derive(Serialize)]
struct Step {
    thought: String,
    action: String,
    input: String,
    observation: String,
}

fn run(request: Request) -> Result<Response, Error> {
    let job: Job = serde_json::from_slice(&request.bytes()?)
        .map_err(|error| Error::Status(400, format!("send {{\"question\", \"steps\"}} as JSON: {error}")))?;
    let model = Model::open_default()?;
    let tools = tools::list();
    let session = Session::open(&model)?;
    let mut report = Report::default();
    let prompt = chat::prompt(&model, &[Message::system(instructions(&tools)), Message::user(job.question)])?;
    report.computed += session.prefill(&prompt)?.computed;
    for step in 1..=job.steps {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).filter(|_| step < job.steps).collect();
        session.constrain(&Grammar::regex(&model, &form(&names))?)?;
        let mut said = String::new();
        for chunk in session.generate(&GenerateOptions::greedy(160))? {
            said.push_str(&chunk?.text);
        }
        session.unconstrain()?;
        let Some((thought, action, input)) = parts(&said) else { break };
        if action == FINISH {
            report.answer = Some(input.to_owned());
            break;
        }
        let observation = act(&tools, action, input);
        let behind = model.encode(&format!("\nObservation: {observation}\n"))?;
        report.computed += session.prefill(&behind)?.computed;
        let (thought, action, input) = (thought.to_owned(), action.to_owned(), input.to_owned());
        report.steps.push(Step { thought, action, input, observation });
    }
    let body = serde_json::to_vec(&report).map_err(|error| Error::Status(500, error.to_string()))?;
    Ok(Response::new(200, "application/json", body))
}

fn instructions(tools: &[Tool]) -> String {
    let line = |tool: &Tool| format!("- {}[input]: {}\n", tool.name, tool.description);
    let tools: String = tools.iter().map(line).collect();
    format!(
        "Answer the question. Write a thought and an action, and read the observation, until you know it.\n\
         Actions:\n{tools}- {FINISH}[answer]: gives the answer\n"
    )
}

/// A thought and an action, as a regular expression.
fn form(names: &[&str]) -> String {
    let quoted = |name: &&str| name.replace('.', "\\.");
    let names: Vec<String> = names.iter().map(quoted).chain([FINISH.to_owned()]).collect();
    format!("Thought: [^\\n\\[\\]]{{1,120}}\\nAction: ({})\\[[^\\n\\[\\]]{{1,80}}\\]", names.join("|"))
}

/// Thought, action and input.
fn parts(said: &str) -> Option<(&str, &str, &str)> {
    let (thought, action) = said.strip_prefix("Thought: ")?.split_once("\nAction: ")?;
    let (action, input) = action.strip_suffix(']')?.split_once('[')?;
    Some((thought, action, input))
}

/// What a tool says, which is given its first argument.
fn act(tools: &[Tool], name: &str, input: &str) -> String {
    let schema = tools.iter().find(|tool| tool.name == name).map(|tool| &tool.input_schema);
    let schema: Value = schema.and_then(|schema| serde_json::from_str(schema).ok()).unwrap_or_default();
    let first = schema.get("properties").and_then(Value::as_object).and_then(|all| all.keys().next().cloned());
    let arguments: Map<String, Value> = first.into_iter().map(|name| (name, input.into())).collect();
    match tools::call(name, &Value::Object(arguments).to_string()) {
        Ok(answer) => answer.content.into_iter().filter_map(text).collect::<Vec<_>>().join(" "),
        Err(error) => format!("{error:?}"),
    }
}

fn text(content: Content) -> Option<String> {
    if let Content::Text(text) = content { Some(text) } else { None }
}

handler!(run);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_and_actions_are_told_apart() {
        assert_eq!(parts("Thought: I see\nAction: look[at it]"), Some(("I see", "look", "at it")));
        for other in ["", "Thought: a", "Thought: a\nAction: b", "Thought: a\nAction: b[c"] {
            assert_eq!(parts(other), None);
        }
        assert!(form(&["a.b"]).contains("(a\\.b|finish)"));
    }
}
