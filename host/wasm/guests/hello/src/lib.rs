//! A WASI 0.2 handler that says hello, as any host of `wasi:http/proxy` serves it.

use wasip2::http::types::{Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};

struct Hello;

wasip2::http::proxy::export!(Hello);

impl wasip2::exports::http::incoming_handler::Guest for Hello {
    fn handle(_request: IncomingRequest, out: ResponseOutparam) {
        let response = OutgoingResponse::new(Fields::new());
        let body = response.body().expect("a response has one body");
        ResponseOutparam::set(out, Ok(response));
        let stream = body.write().expect("a body has one stream");
        stream.blocking_write_and_flush(b"Hello from WASI 0.2\n").expect("somebody reads");
        drop(stream);
        OutgoingBody::finish(body, None).expect("no length was promised");
    }
}
