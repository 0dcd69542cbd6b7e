//! A WASI 0.2 handler that tries what its path says, and tells what became of it. It
//! can be a dependency, too, which another component asks.

use wasip2::clocks::{monotonic_clock, wall_clock};
use wasip2::http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};

mod files;
mod key_value;
mod outbound;

#[allow(missing_docs, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:capabilities;

            interface ask {
                ask: func(path: string) -> string;
            }

            world capabilities {
                export ask;
                import fermyon:spin/config;
                import fermyon:spin/variables@2.0.0;
                import fermyon:spin/key-value@2.0.0;
                import wasi:config/store@0.2.0-rc.1;
                import wasi:config/store@0.2.0-draft-2024-09-27;
                import wasi:logging/logging@0.1.0-draft;
                import wasi:keyvalue/store@0.2.0-draft2;
                import wasi:keyvalue/atomics@0.2.0-draft2;
                import wasi:keyvalue/batch@0.2.0-draft2;
            }
        ",
        path: [
            "../../../../wit/fermyon-spin",
            "../../../../wit/spin-config",
            "../../../../wit/wasi-config",
            "../../../../wit/wasi-config-2024-09-27",
            "../../../../wit/wasi-logging",
            "../../../../wit/wasi-keyvalue",
        ],
        world: "test:capabilities/capabilities",
        generate_all,
    });
}

struct Handler;

wasip2::http::proxy::export!(Handler);
bindings::export!(Handler with_types_in bindings);

impl bindings::exports::test::capabilities::ask::Guest for Handler {
    fn ask(path: String) -> String {
        tell(&path)
    }
}

impl wasip2::exports::http::incoming_handler::Guest for Handler {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        let told = match path.split('?').next() {
            Some("/told") => format!("told {:?}", request.method()),
            _ => tell(&path),
        };
        text(out, &told);
    }
}

fn tell(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    // Behind whichever route it has.
    match &path[path.rfind('/').unwrap_or(0)..] {
        "/environment" => format!("{:?}", std::env::vars().collect::<Vec<_>>()),
        "/variable" => variable(query),
        "/variables" => variables(),
        "/files" => files::operate(query),
        "/whole" => format!("{:?}", std::fs::read(query).map(|bytes| bytes.len()).map_err(|e| e.kind())),
        "/clock" => clock(),
        "/waits" => waits(query.parse().unwrap_or(1)),
        "/log" => log(query),
        "/sockets" => sockets(),
        "/key-value" => key_value::spin(query),
        "/wasi-key-value" => key_value::wasi(query),
        "/key-value-handles" => key_value::handles(query),
        "/key-value-bytes" => key_value::bytes(query),
        "/key-value-swap" => key_value::swap(query),
        "/fetch" => outbound::fetch(query),
        "/seen" => outbound::seen(query),
        "/fetch-many" => outbound::fetch_many(query),
        "/compute-and-fetch" => {
            compute();
            outbound::fetch(query)
        }
        "/header" => outbound::with_header(query),
        "/recurse" => outbound::fetch(&format!("http://{query}.spin.internal/recurse?{query}")),
        "/trap" => core::arch::wasm32::unreachable(),
        _ => "no such path".to_owned(),
    }
}

/// Computes for so long that the host sees it.
fn compute() {
    let begin = std::time::Instant::now();
    while begin.elapsed() < std::time::Duration::from_millis(60) {}
}

fn text(out: ResponseOutparam, text: &str) {
    let response = OutgoingResponse::new(Fields::new());
    let body = response.body().unwrap();
    ResponseOutparam::set(out, Ok(response));
    let stream = body.write().unwrap();
    for part in text.as_bytes().chunks(4096) {
        stream.blocking_write_and_flush(part).unwrap();
    }
    drop(stream);
    OutgoingBody::finish(body, None).unwrap();
}

/// A variable by all interfaces.
fn variable(name: &str) -> String {
    let name = name.to_owned();
    let spin = bindings::fermyon::spin2_0_0::variables::get(&name);
    let legacy = bindings::fermyon::spin::config::get_config(&name);
    let config = bindings::wasi::config0_2_0_rc_1::store::get(&name);
    let draft = bindings::wasi::config0_2_0_draft_2024_09_27::store::get(&name);
    format!("{spin:?} {legacy:?} {config:?} {draft:?}")
}

fn variables() -> String {
    let config = bindings::wasi::config0_2_0_rc_1::store::get_all();
    let draft = bindings::wasi::config0_2_0_draft_2024_09_27::store::get_all();
    format!("{config:?} {draft:?}")
}

/// How fine the clocks are: their resolutions, the least step that is seen on
/// each, and the least time between the steps of both, all in nanoseconds.
fn clock() -> String {
    let wall = || {
        let now = wall_clock::now();
        now.seconds * 1_000_000_000 + u64::from(now.nanoseconds)
    };
    let read = || (monotonic_clock::now(), wall());
    let mut last = read();
    let mut steps = [u64::MAX; 2];
    let mut together = true;
    let end = last.0 + 30_000_000;
    while last.0 < end {
        let now = read();
        if now.0 != last.0 {
            steps[0] = steps[0].min(now.0 - last.0);
        }
        if now.1 != last.1 {
            steps[1] = steps[1].min(now.1 - last.1);
        }
        together &= (now.0 - last.0) % 5_000_000 == 0;
        last = now;
    }
    let wall = wall_clock::resolution();
    format!("{} {} {} {} {together}", monotonic_clock::resolution(), wall.nanoseconds, steps[0], steps[1])
}

/// Nanoseconds that so many waits of a nanosecond take.
fn waits(n: u64) -> String {
    let begin = monotonic_clock::now();
    for _ in 0..n {
        monotonic_clock::subscribe_duration(1).block();
        monotonic_clock::subscribe_instant(monotonic_clock::now() + 1).block();
    }
    (monotonic_clock::now() - begin).to_string()
}

fn log(query: &str) -> String {
    use bindings::wasi::logging::logging::{Level, log};
    let many = query.parse().unwrap_or(1);
    for n in 0..many {
        log(Level::Info, "context", &format!("record {n}\nforged line"));
    }
    log(Level::Critical, "", "the last");
    "logged".to_owned()
}

fn sockets() -> String {
    use wasip2::sockets::network::IpAddressFamily;
    use wasip2::sockets::{instance_network, ip_name_lookup, tcp_create_socket, udp_create_socket};
    let tcp = tcp_create_socket::create_tcp_socket(IpAddressFamily::Ipv4).map(drop).map_err(|e| e.name());
    let udp = udp_create_socket::create_udp_socket(IpAddressFamily::Ipv4).map(drop).map_err(|e| e.name());
    let network = instance_network::instance_network();
    let lookup = ip_name_lookup::resolve_addresses(&network, "localhost").and_then(|found| {
        found.subscribe().block();
        found.resolve_next_address().map(drop)
    });
    let lookup = lookup.map_err(|e| e.name());
    format!("{tcp:?} {udp:?} {lookup:?}")
}
