//! An agent: calls the tools that it was granted until it can answer.
//!
//! The conversation stays in a session beside the model. What a tool says is appended to
//! it; nothing is rendered, tokenised or computed a second time. What the model writes is
//! held to a grammar, so that each turn is a call of a tool that there is, with arguments
//! of its schema, or the answer.
//!
//! Others can call it as a tool (`tool.rs`).
//!
//! ```sh
//! curl -N 127.0.0.1:3000/v1/agents/desk/runs -d '{"input": "What is 37 × 43?", "stream": true}'
//! ```

mod job;
mod record;
mod run;
mod settings;
mod step;
mod store;
mod tool;
mod tools;
mod turn;

use nala_sdk::http::{Method, Request, Response};
use nala_sdk::{Error, handler};
use serde_json::json;

use crate::job::Asked;
use crate::run::Run;
use crate::settings::Settings;

fn handle(request: Request) -> Result<Response, Error> {
    if request.method() != &Method::Post {
        return Err(Error::Status(405, "POST a JSON object with an `input`".to_owned()));
    }
    let asked = Asked::read(&request.bytes()?)?;
    let settings = Settings::of_environment().map_err(|why| Error::Status(500, why))?;
    let is_streamed = asked.is_streamed();
    let run = Run::begin(asked, &settings)?;
    let id = run.id().map(str::to_owned);
    if !is_streamed {
        let mut steps = Vec::new();
        let end = run.go(&mut |step| {
            steps.push(step.json());
            Ok(())
        })?;
        let body = json!({ "run": id, "answer": end.answer, "ended": end.reason, "steps": steps, "usage": end.usage });
        return Ok(Response::new(200, "application/json", body.to_string()));
    }
    Ok(Response::sse(move |out| {
        if let Some(id) = id {
            out.event("run", &json!({ "run": id }).to_string())?;
        }
        let end = run.go(&mut |step| out.event(step.name(), &step.json().to_string()));
        match end {
            Ok(end) => {
                let body = json!({ "answer": end.answer, "ended": end.reason, "usage": end.usage });
                out.event("end", &body.to_string())
            }
            // The head is out: what went wrong is an event of its own.
            Err(error) => out.event("error", &json!({ "message": error.to_string() }).to_string()),
        }
    }))
}

handler!(handle);
nala_sdk::provider!(tool::tools, tool::call);
