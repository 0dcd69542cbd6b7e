//! A WASI 0.2 handler that does what its path says, nice things and others.

use wasip2::clocks::monotonic_clock;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingRequest, Method, OutgoingBody, OutgoingRequest, OutgoingResponse, ResponseOutparam,
    Scheme,
};
use wasip2::io::streams::OutputStream;

mod embedding;
mod grammar;
mod model;
mod step;
mod telemetry;

struct Handler;

wasip2::http::proxy::export!(Handler);

impl wasip2::exports::http::incoming_handler::Guest for Handler {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        match path {
            "/hello" => text(out, "hello"),
            "/echo" => echo(request, out),
            "/stream" => stream(out, query.parse().unwrap_or(3)),
            "/trap" => core::arch::wasm32::unreachable(),
            "/panic" => panic!("the guest panics"),
            "/spin" => spin(),
            "/spin-late" => {
                let body = begin(out, 200);
                let stream = body.write().unwrap();
                write(&stream, "begun");
                spin();
            }
            "/trap-late" => {
                let body = begin(out, 200);
                let stream = body.write().unwrap();
                write(&stream, "begun");
                core::arch::wasm32::unreachable()
            }
            "/random" => loop {
                std::hint::black_box(wasip2::random::random::get_random_bytes(60_000));
            },
            "/sleep" => {
                monotonic_clock::subscribe_duration(query.parse().unwrap_or(1_000) * 1_000_000).block();
                text(out, "slept");
            }
            "/grow" => grow(),
            "/handles" => {
                let _all: Vec<Fields> = (0..1_000_000).map(|_| Fields::new()).collect();
                text(out, "a million handles");
            }
            "/silent" => {}
            "/environment" => text(out, &environment()),
            "/print" => {
                println!("printed to stdout");
                eprintln!("printed to stderr {}", "x".repeat(query.parse().unwrap_or(0)));
                text(out, "printed");
            }
            "/outbound" => text(out, &outbound()),
            "/host-calls" => text(out, &host_calls(query.parse().unwrap_or(1000))),
            "/generate" => model::generate(out),
            "/generate-forever" => model::generate_forever(out),
            "/programs" => text(out, &model::programs()),
            "/sessions" => text(out, &model::sessions()),
            "/kv" => text(out, &model::kv()),
            "/kv-busy" => text(out, &model::kv_busy()),
            "/kv-failed" => text(out, &model::kv_failed()),
            "/kv-unread" => text(out, &model::kv_unread()),
            "/encode" => text(out, &model::encode(query.parse().unwrap_or(0))),
            "/encode-forever" => loop {
                std::hint::black_box(model::encode(query.parse().unwrap_or(0)));
            },
            "/decode" => text(out, &model::decode(query.parse().unwrap_or(0))),
            "/model" => text(out, &model::about()),
            "/open" => text(out, &model::open_named(query)),
            "/hold" => model::hold(out, query),
            "/grammars" => text(out, &grammar::grammars()),
            "/grammars-refused" => text(out, &grammar::refused()),
            "/grammars-held" => text(out, &grammar::held()),
            "/grammar-of-another" => text(out, &grammar::of_another_model()),
            "/compile" => text(out, &grammar::compile()),
            "/steps" => text(out, &step::steps()),
            "/steps-refused" => text(out, &step::refused()),
            "/steps-counted" => text(out, &step::counted()),
            "/steps-dropped" => text(out, &step::dropped(query.parse().unwrap_or(1))),
            "/steps-huge" => text(out, &step::huge(query.parse().unwrap_or(0))),
            "/steps-many" => text(out, &step::many(query.parse().unwrap_or(0))),
            "/adapters" => text(out, &model::adapters(query)),
            "/embeddings" => text(out, &embedding::embeddings()),
            "/embeddings-refused" => text(out, &embedding::refused()),
            "/embeddings-many" => text(out, &embedding::many(query.parse().unwrap_or(0))),
            "/embeddings-texts" => text(out, &embedding::texts()),
            "/stops" => text(out, &model::stops()),
            "/inject" => text(out, &step::inject()),
            "/priorities" => text(out, &step::priorities(query.parse().unwrap_or(0))),
            "/pollable" => text(out, &model::pollable()),
            "/machine" => text(out, &telemetry::machine()),
            "/load" => text(out, &telemetry::load()),
            "/loads" => text(out, &telemetry::loads(query.parse().unwrap_or(2))),
            "/models" => text(out, &telemetry::models()),
            _ => drop(begin(out, 404)),
        }
    }
}

/// Sends the head of a response.
fn begin(out: ResponseOutparam, status: u16) -> OutgoingBody {
    let response = OutgoingResponse::new(Fields::new());
    response.set_status_code(status).unwrap();
    let body = response.body().unwrap();
    ResponseOutparam::set(out, Ok(response));
    body
}

fn text(out: ResponseOutparam, text: &str) {
    let body = begin(out, 200);
    let stream = body.write().unwrap();
    write(&stream, text);
    drop(stream);
    OutgoingBody::finish(body, None).unwrap();
}

fn write(stream: &OutputStream, text: &str) {
    for part in text.as_bytes().chunks(4096) {
        stream.blocking_write_and_flush(part).unwrap();
    }
}

fn echo(request: IncomingRequest, out: ResponseOutparam) {
    let body = request.consume().unwrap();
    let input = body.stream().unwrap();
    let mut all = Vec::new();
    while let Ok(part) = input.blocking_read(64 << 10) {
        all.extend_from_slice(&part);
    }
    text(out, &String::from_utf8_lossy(&all));
}

/// A part every 50 ms.
fn stream(out: ResponseOutparam, parts: u32) {
    let body = begin(out, 200);
    let stream = body.write().unwrap();
    for n in 0..parts {
        if n > 0 {
            monotonic_clock::subscribe_duration(50_000_000).block();
        }
        if stream.blocking_write_and_flush(format!("part {n}\n").as_bytes()).is_err() {
            return;
        }
    }
    drop(stream);
    OutgoingBody::finish(body, None).unwrap();
}

fn spin() -> ! {
    let mut n = 0_u64;
    loop {
        n = std::hint::black_box(n.wrapping_add(1));
    }
}

fn grow() {
    let mut all: Vec<Vec<u8>> = Vec::new();
    loop {
        all.push(std::hint::black_box(vec![1; 1 << 20]));
    }
}

fn environment() -> String {
    let variables: Vec<_> = std::env::vars().collect();
    let arguments: Vec<_> = std::env::args().collect();
    let root = std::fs::read_dir("/").is_ok();
    let socket = std::net::TcpStream::connect("127.0.0.1:1").map_err(|e| e.kind());
    format!("variables {variables:?} arguments {arguments:?} root {root} socket {socket:?}")
}

fn outbound() -> String {
    let request = OutgoingRequest::new(Fields::new());
    request.set_method(&Method::Get).unwrap();
    request.set_scheme(Some(&Scheme::Http)).unwrap();
    request.set_authority(Some("127.0.0.1:9")).unwrap();
    request.set_path_with_query(Some("/")).unwrap();
    let sent = wasip2::http::outgoing_handler::handle(request, None);
    let answer = sent.and_then(|future| {
        future.subscribe().block();
        future.get().unwrap().unwrap()
    });
    match answer {
        Ok(_) => "sent".into(),
        Err(ErrorCode::HttpRequestDenied) => "denied".into(),
        Err(other) => format!("{other:?}"),
    }
}

/// Nanoseconds a call of the host takes.
fn host_calls(n: u64) -> String {
    let begin = monotonic_clock::now();
    for _ in 0..n {
        std::hint::black_box(model::limit());
    }
    let simple = monotonic_clock::now() - begin;
    let begin = monotonic_clock::now();
    for _ in 0..n {
        std::hint::black_box(model::used());
    }
    let meter = monotonic_clock::now() - begin;
    format!("{} {}", simple / n, meter / n)
}
