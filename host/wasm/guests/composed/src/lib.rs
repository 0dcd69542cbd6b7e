//! A WASI 0.2 handler that asks a dependency, or below `/own` tells what it has itself.

use wasip2::filesystem::preopens::get_directories;
use wasip2::http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};

#[path = "../../capabilities/src/outbound.rs"]
#[allow(dead_code, reason = "one of its ways is enough here")]
mod outbound;

#[allow(missing_docs, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:composed;

            package test:capabilities {
                interface ask {
                    ask: func(path: string) -> string;
                }
            }

            world composed {
                import test:capabilities/ask;
                import fermyon:spin/key-value@2.0.0;
            }
        ",
        path: "../../../../wit/fermyon-spin",
        world: "test:composed/composed",
        generate_all,
    });
}

struct Handler;

wasip2::http::proxy::export!(Handler);

impl wasip2::exports::http::incoming_handler::Guest for Handler {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        let told = match path.strip_prefix("/own") {
            Some(path) => own(path),
            None => bindings::test::capabilities::ask::ask(&path),
        };
        let response = OutgoingResponse::new(Fields::new());
        let body = response.body().unwrap();
        ResponseOutparam::set(out, Ok(response));
        let stream = body.write().unwrap();
        stream.blocking_write_and_flush(told.as_bytes()).unwrap();
        drop(stream);
        OutgoingBody::finish(body, None).unwrap();
    }
}

fn own(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    match path {
        "/environment" => format!("{:?}", std::env::vars().collect::<Vec<_>>()),
        "/folders" => format!("{:?}", get_directories().into_iter().map(|(_, name)| name).collect::<Vec<_>>()),
        "/key-value" => {
            format!("{:?}", bindings::fermyon::spin::key_value::Store::open(query).map(drop))
        }
        "/fetch" => outbound::fetch(query),
        _ => "no such path".to_owned(),
    }
}
