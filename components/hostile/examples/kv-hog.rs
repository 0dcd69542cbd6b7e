//! Takes as much of the model's memory as it can get and keeps it: sessions that are
//! prefilled until nothing fits any more, never closed (`/keep`), or saved by name
//! (`/save`).

#![allow(clippy::print_stdout, reason = "what a guest prints is its log")]

use hostile::wasi::clocks::monotonic_clock;
use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, answer, tally};
use nala_sdk::llm::{Error, Model, Session};

fn handle(asked: Asked, out: ResponseOutparam) {
    let model = match Model::open_default() {
        Ok(model) => model,
        Err(error) => return answer(out, &format!("{error:?}")),
    };
    // Of its own, so that no two share what they hold.
    let own = hostile::wasi::random::random::get_random_u64().to_string();
    let tokens = model.encode(&format!("{own} {}", "word ".repeat(500))).unwrap_or_default();
    let (sessions, end) = hog(&model, &tokens);
    if asked.way == "save" {
        let saved = (0..1000).map(|n| match sessions.first().map(|session| session.save(&format!("{own}-{n}"))) {
            Some(Ok(())) => "saved".to_owned(),
            Some(Err(error)) => name(&error),
            None => "none".to_owned(),
        });
        return answer(out, &tally(saved));
    }
    println!("{} sessions with {} tokens, then {end}", sessions.len(), sessions.iter().map(Session::len).sum::<u32>());
    monotonic_clock::subscribe_duration(u64::MAX).block();
    answer(out, "not stopped");
}

/// All sessions that can be had, each as long as can be.
fn hog(model: &Model, tokens: &[u32]) -> (Vec<Session>, String) {
    let mut sessions = Vec::new();
    loop {
        let session = match Session::open(model) {
            Ok(session) => session,
            Err(error) => return (sessions, name(&error)),
        };
        let full = loop {
            if let Err(error) = session.prefill(tokens) {
                break error;
            }
        };
        sessions.push(session);
        if !matches!(full, Error::ContextFull(_)) {
            return (sessions, name(&full));
        }
    }
}

fn name(error: &Error) -> String {
    format!("{error:?}")
}

hostile::guest!(handle);
