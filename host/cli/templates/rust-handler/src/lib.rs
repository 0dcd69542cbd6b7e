//! Answers a question: `GET /?q=...`, or a POST with the question as its body.

use nala_sdk::chat::{self, Message};
use nala_sdk::http::{Request, Response};
use nala_sdk::llm::{GenerateOptions, Model, Session};
use nala_sdk::{Error, handler};

/// The longest answer, in tokens.
const MAX_NEW: u32 = 512;

fn answer(request: Request) -> Result<Response, Error> {
    let question = match request.query("q") {
        Some(question) => question,
        None => request.text()?,
    };
    if question.trim().is_empty() {
        return Err(Error::Status(400, "ask something: /?q=... or a POST body".to_owned()));
    }

    // Without a system message the model's own template puts its default one.
    let model = Model::open_default()?;
    let prompt = chat::prompt(&model, &[Message::user(question)])?;

    // A session is the model's memory of one conversation.
    let session = Session::open(&model)?;
    session.prefill(&prompt)?;
    let tokens = session.generate(&GenerateOptions::greedy(MAX_NEW))?;

    // Every token leaves as it comes. A client that hangs up ends the loop, and
    // with it the generation. An answer that the host cuts short ends with an
    // error, so that the client sees it break off.
    Ok(Response::stream("text/plain; charset=utf-8", move |out| {
        for chunk in tokens {
            out.write(chunk?.text)?;
        }
        out.write("\n")
    }))
}

handler!(answer);
