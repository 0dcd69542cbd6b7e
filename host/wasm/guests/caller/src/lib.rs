//! A WASI 0.2 handler that calls tools, as its path and query say.

use bindings::nala::tools::registry::{self, Event, Running};
use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};
use wasip2::io::poll::poll;

mod bindings {
    #![allow(missing_docs, reason = "generated")]
    wit_bindgen::generate!({
        inline: "
            package test:caller;

            world caller {
                import nala:tools/registry@0.1.0;
            }
        ",
        path: ["../../../../wit/wasi-io", "../../../../wit/nala-tools"],
        world: "test:caller/caller",
        with: { "wasi:io/poll@0.2.6": wasip2::io::poll },
        generate_all,
    });
}

struct Handler;

wasip2::http::proxy::export!(Handler);

impl wasip2::exports::http::incoming_handler::Guest for Handler {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let (name, arguments) = query.split_once('&').unwrap_or((query, "{}"));
        let arguments = arguments.replace("%22", "\"").replace("%20", " ");
        // Whatever route it has.
        let answer = match path.rfind('/').map_or(path, |at| &path[at..]) {
            "/list" => registry::list_tools().into_iter().map(|tool| format!("{tool:?}\n")).collect(),
            "/call" => format!("{:?}", registry::call(name, &arguments)),
            "/events" => events(name, &arguments),
            "/drop" => dropped(name, &arguments),
            "/both" => both(name, &arguments),
            "/many" => many(name, &arguments),
            _ => "no such path".into(),
        };
        let response = OutgoingResponse::new(Fields::new());
        let body = response.body().unwrap();
        ResponseOutparam::set(out, Ok(response));
        let stream = body.write().unwrap();
        for part in answer.as_bytes().chunks(4096) {
            stream.blocking_write_and_flush(part).unwrap();
        }
        drop(stream);
        OutgoingBody::finish(body, None).unwrap();
    }
}

/// All that comes of a call, and what comes after its end.
fn events(name: &str, arguments: &str) -> String {
    let running = match registry::start(name, arguments) {
        Ok(running) => running,
        Err(error) => return format!("{error:?}"),
    };
    let mut all = String::new();
    loop {
        let ready = running.subscribe();
        ready.block();
        assert!(ready.ready());
        drop(ready);
        match running.next() {
            Ok(Some(event)) => all += &format!("{event:?}\n"),
            Ok(None) => return all + "end",
            Err(error) => all += &format!("{error:?}\n"),
        }
    }
}

/// Begins a call and drops it.
fn dropped(name: &str, arguments: &str) -> String {
    let running = registry::start(name, arguments).unwrap();
    let ready = running.subscribe();
    subscribe_duration(50_000_000).block();
    let was_ready = ready.ready();
    drop(ready);
    drop(running);
    format!("ready {was_ready}")
}

/// Two calls at a time, waited for together.
fn both(name: &str, arguments: &str) -> String {
    let calls = [registry::start(name, arguments).unwrap(), registry::start(name, arguments).unwrap()];
    let mut open: Vec<&Running> = calls.iter().collect();
    let mut answers = 0;
    while !open.is_empty() {
        let pollables: Vec<_> = open.iter().map(|running| running.subscribe()).collect();
        let ready = poll(&pollables.iter().collect::<Vec<_>>());
        drop(pollables);
        for at in ready.into_iter().rev() {
            if let Event::Answer(_) = open[at as usize].next().unwrap().unwrap() {
                answers += 1;
                open.remove(at as usize);
            }
        }
    }
    format!("{answers} answers")
}

/// Begins calls until one cannot be.
fn many(name: &str, arguments: &str) -> String {
    let mut calls = Vec::new();
    loop {
        match registry::start(name, arguments) {
            Ok(running) => calls.push(running),
            Err(error) => return format!("{} and then {error:?}", calls.len()),
        }
    }
}
