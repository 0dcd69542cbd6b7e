//! What the handler does with a model.

use wasip2::http::types::{OutgoingBody, ResponseOutparam};

use bindings::nala::llm::meter;
use bindings::nala::llm::model::{self, Model};
use bindings::nala::llm::session::{GenerateOptions, Priority, Sampler, Session, SessionOptions};

pub(crate) mod bindings {
    #![allow(missing_docs, reason = "generated")]
    wit_bindgen::generate!({
        path: ["../../../../wit/wasi-io", "../../../../wit/nala-llm"],
        world: "nala:llm/agent",
        with: { "wasi:io/poll@0.2.6": wasip2::io::poll },
        generate_all,
    });
}

const SESSION: SessionOptions = SessionOptions { max_tokens: None, priority: Priority::Normal, adapter: None };

pub(crate) const GREEDY: Sampler = Sampler {
    repeat_penalty: 1.0,
    frequency_penalty: 0.0,
    presence_penalty: 0.0,
    penalty_window: 0,
    dry: None,
    top_n_sigma: 0.0,
    top_k: 0,
    typical_p: 1.0,
    top_p: 1.0,
    min_p: 0.0,
    xtc: None,
    temperature: 0.0,
    dynamic_temperature: None,
    mirostat: None,
    seed: None,
};

pub(crate) fn options(max_new: u32) -> GenerateOptions {
    GenerateOptions {
        sampler: GREEDY,
        max_new,
        stop_tokens: vec![],
        stop_text: vec![],
        shown_tokens: vec![],
        ignore_end: true,
        bias: vec![],
        dry_breakers: vec![],
        top_logprobs: None,
        flush_tokens: 1,
        flush_ms: 0,
        deadline_ms: None,
        draft: None,
    }
}

pub(crate) fn open() -> (Model, Session) {
    let model = Model::open(&model::available()[0]).unwrap();
    let session = Session::open(&model, &SESSION).unwrap();
    (model, session)
}

pub(crate) fn generate(out: ResponseOutparam) {
    let (model, session) = open();
    session.prefill(&model.encode("abc", false).unwrap()).unwrap();
    let run = session.generate(&options(5)).unwrap();
    let body = crate::begin(out, 200);
    let stream = body.write().unwrap();
    while let Some(chunk) = run.next().unwrap() {
        crate::write(&stream, &chunk.text);
    }
    drop(stream);
    OutgoingBody::finish(body, None).unwrap();
}

/// Never looks whether anybody listens.
pub(crate) fn generate_forever(out: ResponseOutparam) {
    let (model, session) = open();
    session.prefill(&model.encode("abc", false).unwrap()).unwrap();
    let body = crate::begin(out, 200);
    let stream = body.write().unwrap();
    crate::write(&stream, "begun");
    let run = session.generate(&options(100_000)).unwrap();
    while let Ok(Some(_)) = run.next() {}
}

pub(crate) fn say(session: &Session, n: u32) -> String {
    let run = session.generate(&options(n)).unwrap();
    let mut text = String::new();
    while let Some(chunk) = run.next().unwrap() {
        text += &chunk.text;
    }
    text
}

/// Runs that show control tokens and end at a text.
pub(crate) fn stops() -> String {
    let model = Model::open(&model::available()[0]).unwrap();
    let stop_text = vec!["never".to_owned(), "c".to_owned()];
    let mut told = Vec::new();
    for shown_tokens in [vec![], model.encode("<user>", true).unwrap()] {
        let session = Session::open(&model, &SESSION).unwrap();
        session.prefill(&model.encode("!", false).unwrap()).unwrap();
        let run =
            session.generate(&GenerateOptions { shown_tokens, stop_text: stop_text.clone(), ..options(9) }).unwrap();
        let (mut text, mut finish) = (String::new(), None);
        while let Some(chunk) = run.next().unwrap() {
            text += &chunk.text;
            finish = chunk.finish;
        }
        told.push(format!("{text} {finish:?}"));
    }
    let session = Session::open(&model, &SESSION).unwrap();
    let wrong = session.generate(&GenerateOptions { shown_tokens: vec![1_000_000], ..options(9) }).err();
    format!("{} {wrong:?}", told.join(", "))
}

/// What the model says without an adapter and with each of its own, then what one
/// that it does not have comes to. `asked`: how many tokens, and behind what.
pub(crate) fn adapters(asked: &str) -> String {
    let (tokens, text) = asked.split_once(',').unwrap_or(("3", "c"));
    let (tokens, text) = (tokens.parse().unwrap(), text.replace('+', " "));
    let model = Model::open(&model::available()[0]).unwrap();
    let names = model.adapters().into_iter().map(Some);
    let mut said = Vec::new();
    for adapter in std::iter::once(None).chain(names) {
        let session = Session::open(&model, &SessionOptions { adapter, ..SESSION }).unwrap();
        session.prefill(&model.encode(&text, false).unwrap()).unwrap();
        said.push(say(&session, tokens));
    }
    let wrong = Session::open(&model, &SessionOptions { adapter: Some("none".into()), ..SESSION }).err();
    format!("{said:?}\n{wrong:?}")
}

/// Everything a program can do to a session, and what it then says.
pub(crate) fn programs() -> String {
    let (model, session) = open();
    session.prefill(&model.encode(&"abc".repeat(10), false).unwrap()).unwrap();
    let child = session.fork().unwrap();
    let mut said = vec![say(&child, 3), say(&session, 3)];
    session.rewind(29).unwrap();
    said.push(say(&session, 3));
    child.save("name").unwrap();
    drop(child);
    let restored = Session::restore(&model, &SESSION, "name").unwrap().unwrap();
    restored.park().unwrap();
    said.push(format!("{} {}", restored.length(), say(&restored, 3)));
    restored.evict(5, 10).unwrap();
    said.push(format!("{} {}", restored.length(), say(&restored, 2)));
    let missing = Session::restore(&model, &SESSION, "other").unwrap().is_none();
    let again = open().1;
    let info = again.prefill(&model.encode(&"abc".repeat(10), false).unwrap()).unwrap();
    let cells = meter::used().kv_cells;
    drop((session, restored, again));
    format!(
        "{said:?} {missing} cached {} of {}, {cells} cells, then {}",
        info.cached,
        info.cached + info.computed,
        meter::used().kv_cells
    )
}

pub(crate) fn sessions() -> String {
    let model = Model::open(&model::available()[0]).unwrap();
    let mut all = Vec::new();
    loop {
        match Session::open(&model, &SESSION) {
            Ok(session) => all.push(session),
            Err(error) => return format!("{} sessions, then {error:?}", all.len()),
        }
    }
}

pub(crate) fn kv() -> String {
    let (model, session) = open();
    let tokens = model.encode(&"x".repeat(100), false).unwrap();
    let mut held = 0;
    let error = loop {
        match session.prefill(&tokens) {
            Ok(info) => held += info.computed,
            Err(error) => break error,
        }
    };
    let used = meter::used();
    format!("{held} cells, then {error:?}; meter {} of {}", used.kv_cells, meter::limit().kv_cells)
}

/// Asks for a prefill while a run goes on, and for a second run.
pub(crate) fn kv_busy() -> String {
    let (model, session) = open();
    let tokens = model.encode("abc", false).unwrap();
    session.prefill(&tokens).unwrap();
    let run = session.generate(&options(500)).unwrap();
    let before = meter::used().kv_cells;
    let prefill = session.prefill(&tokens).is_err();
    let second = session.generate(&options(500)).is_err();
    let after = meter::used().kv_cells;
    while run.next().unwrap().is_some() {}
    format!("{before} {after} {} refused {prefill} {second}", meter::used().kv_cells)
}

/// Keeps a run that has failed while the session has another one.
pub(crate) fn kv_failed() -> String {
    let (model, session) = open();
    let failed = session.generate(&options(100)).unwrap();
    let begun = meter::used().kv_cells;
    let error = failed.next().is_err();
    let ended = meter::used().kv_cells;
    session.prefill(&model.encode("abc", false).unwrap()).unwrap();
    let _run = session.generate(&options(500)).unwrap();
    let before = meter::used().kv_cells;
    drop(failed);
    format!("{begun} {ended} {before} {} error {error}", meter::used().kv_cells)
}

/// Drops a run whose tokens were never taken, then the session.
pub(crate) fn kv_unread() -> String {
    let (model, session) = open();
    session.prefill(&model.encode("abc", false).unwrap()).unwrap();
    let run = session.generate(&GenerateOptions { flush_tokens: 1000, flush_ms: 60_000, ..options(200) }).unwrap();
    run.subscribe().block();
    drop(run);
    let dropped = meter::used().kv_cells;
    let length = session.length();
    session.prefill(&model.encode("d", false).unwrap()).unwrap();
    let exact = meter::used().kv_cells;
    drop(session);
    format!("{length} {dropped} {exact} {}", meter::used().kv_cells)
}

/// Tokenises a text of so many bytes.
pub(crate) fn encode(bytes: usize) -> String {
    let model = Model::open(&model::available()[0]).unwrap();
    match model.encode(&"x".repeat(bytes), false) {
        Ok(tokens) => format!("{} tokens", tokens.len()),
        Err(error) => format!("{error:?}"),
    }
}

/// Turns so many tokens into text.
pub(crate) fn decode(tokens: usize) -> String {
    let model = Model::open(&model::available()[0]).unwrap();
    match model.decode(&vec![258; tokens]) {
        Ok(bytes) => format!("{} bytes", bytes.len()),
        Err(error) => format!("{error:?}"),
    }
}

pub(crate) fn about() -> String {
    let name = &model::available()[0];
    let model = Model::open(name).unwrap();
    let info = model.info();
    let missing = Model::open("no-such-model").err();
    let withheld = Model::open("secret").err();
    let bytes = model.decode(&model.encode("héllo", false).unwrap()).unwrap();
    let bad = model.decode(&[u32::MAX]).is_err();
    format!(
        "{} {} {} {missing:?} {withheld:?} {:?} {} {:?} {bad}",
        info.name,
        info.arch,
        info.n_vocab,
        info.caps,
        info.cache_block,
        String::from_utf8(bytes)
    )
}

/// Opens the model of a name and has it speak, or says why that is not possible.
pub(crate) fn open_named(name: &str) -> String {
    let model = match Model::open(name) {
        Ok(model) => model,
        Err(error) => return format!("{error:?}"),
    };
    let session = Session::open(&model, &SESSION).unwrap();
    session.prefill(&model.encode("!", false).unwrap()).unwrap();
    let cells = meter::limit().kv_cells;
    format!("{} says {} with {cells} cells of {:?}", model.info().name, say(&session, 3), model::available())
}

/// Opens the model of a name, drops the handle and keeps a run of it, until the
/// client is gone.
pub(crate) fn hold(out: ResponseOutparam, name: &str) {
    let run = {
        let model = Model::open(name).unwrap();
        let session = Session::open(&model, &SESSION).unwrap();
        session.prefill(&model.encode("!", false).unwrap()).unwrap();
        session.generate(&options(3)).unwrap()
    };
    let body = crate::begin(out, 200);
    let stream = body.write().unwrap();
    crate::write(&stream, "begun");
    wasip2::clocks::monotonic_clock::subscribe_duration(60_000_000_000).block();
    while let Ok(Some(_)) = run.next() {}
}

pub(crate) fn pollable() -> String {
    let (model, session) = open();
    session.prefill(&model.encode("abc", false).unwrap()).unwrap();
    let run = session.generate(&options(3)).unwrap();
    let mut text = String::new();
    loop {
        let ready = run.subscribe();
        ready.block();
        assert!(ready.ready());
        drop(ready);
        match run.next().unwrap() {
            Some(chunk) => text += &chunk.text,
            None => return text,
        }
    }
}

pub(crate) fn used() -> u64 {
    meter::used().prompt_tokens
}

pub(crate) fn limit() -> u32 {
    meter::limit().sessions
}
