//! A WASI 0.3 handler that asks a dependency.

use wasip3::http::types::{ErrorCode, Fields, Request, Response};
use wasip3::{wit_bindgen, wit_future, wit_stream};

#[allow(missing_docs, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:composed;

            package test:capabilities {
                interface ask-async {
                    ask: async func(path: string) -> string;
                }
            }

            world composed {
                import test:capabilities/ask-async;
            }
        ",
        world: "test:composed/composed",
        generate_all,
    });
}

struct Service;

wasip3::http::service::export!(Service);

impl wasip3::exports::http::handler::Guest for Service {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        let path = request.get_path_with_query().unwrap_or_default();
        let told = bindings::test::capabilities::ask_async::ask(path).await;
        let (mut body, reader) = wit_stream::new();
        let (trailers, trailers_reader) = wit_future::new(|| Ok(None));
        let (response, _sent) = Response::new(Fields::new(), Some(reader), trailers_reader);
        drop(trailers);
        wit_bindgen::spawn_local(async move {
            body.write_all(told.into_bytes()).await;
        });
        Ok(response)
    }
}
