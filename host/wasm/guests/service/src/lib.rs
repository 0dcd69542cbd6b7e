//! A WASI 0.3 handler: streams three parts, or traps where the path says so.

use wasip3::http::types::{ErrorCode, Fields, Request, Response};
use wasip3::{clocks::monotonic_clock, wit_bindgen, wit_future, wit_stream};

struct Service;

wasip3::http::service::export!(Service);

impl wasip3::exports::http::handler::Guest for Service {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        let path = request.get_path_with_query().unwrap_or_default();
        match path.as_str() {
            "/trap" => core::arch::wasm32::unreachable(),
            "/spin" => loop {
                std::hint::black_box(());
            },
            "/error" => return Err(ErrorCode::InternalError(Some("as asked".into()))),
            _ => {}
        }
        let (mut body, reader) = wit_stream::new();
        let (trailers, trailers_reader) = wit_future::new(|| Ok(None));
        let (response, _sent) = Response::new(Fields::new(), Some(reader), trailers_reader);
        drop(trailers);
        wit_bindgen::spawn_local(async move {
            for part in 0..3 {
                if !body.write_all(format!("part {part}\n").into_bytes()).await.is_empty() {
                    return;
                }
                monotonic_clock::wait_for(20_000_000).await;
            }
        });
        Ok(response)
    }
}
