//! A WASI 0.3 handler that says hello, as any host of `wasi:http/service` serves it.

use wasip3::http::types::{ErrorCode, Fields, Request, Response};
use wasip3::{wit_bindgen, wit_future, wit_stream};

struct Hello;

wasip3::http::service::export!(Hello);

impl wasip3::exports::http::handler::Guest for Hello {
    async fn handle(_request: Request) -> Result<Response, ErrorCode> {
        let (mut body, reader) = wit_stream::new();
        let (trailers, trailers_reader) = wit_future::new(|| Ok(None));
        let (response, _sent) = Response::new(Fields::new(), Some(reader), trailers_reader);
        drop(trailers);
        wit_bindgen::spawn_local(async move {
            // Whoever does not read it does not want it.
            let _unread = body.write_all(b"Hello from WASI 0.3\n".to_vec()).await;
        });
        Ok(response)
    }
}
