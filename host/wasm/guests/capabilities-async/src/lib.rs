//! A WASI 0.3 handler that tries what its path says, and tells what became of it. It
//! can be a dependency, too, which another component asks.

use wasip3::clocks::monotonic_clock;
use wasip3::filesystem::preopens::get_directories;
use wasip3::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};
use wasip3::http::types::{ErrorCode, Fields, Request, Response, Scheme};
use wasip3::{http::client, wit_bindgen, wit_future, wit_stream};

#[allow(missing_docs, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:capabilities;

            package wasi:keyvalue@0.2.0-draft2 {
                interface store {
                    variant error { no-such-store, access-denied, other(string) }
                    resource bucket {
                        set: func(key: string, value: list<u8>) -> result<_, error>;
                    }
                    open: func(identifier: string) -> result<bucket, error>;
                }
                /// As Spin has it.
                interface batch {
                    use store.{bucket, error};
                    get-many: func(bucket: borrow<bucket>, keys: list<string>)
                        -> result<list<tuple<string, option<list<u8>>>>, error>;
                }
            }

            interface ask-async {
                ask: async func(path: string) -> string;
            }

            world capabilities {
                export ask-async;
                import spin:variables/variables@3.0.0;
                import spin:key-value/key-value@3.0.0;
                import wasi:keyvalue/store@0.2.0-draft2;
                import wasi:keyvalue/batch@0.2.0-draft2;
            }
        ",
        path: ["../../../../wit/spin-variables", "../../../../wit/spin-key-value"],
        world: "test:capabilities/capabilities",
        generate_all,
    });
}

struct Service;

wasip3::http::service::export!(Service);
bindings::export!(Service with_types_in bindings);

impl bindings::exports::test::capabilities::ask_async::Guest for Service {
    async fn ask(path: String) -> String {
        tell(&path).await
    }
}

impl wasip3::exports::http::handler::Guest for Service {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        let path = request.get_path_with_query().unwrap_or_default();
        let told = tell(&path).await;
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

async fn tell(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    match path {
        "/variable" => format!("{:?}", bindings::spin::variables::variables::get(query.to_owned()).await),
        "/key-value" => key_value(query).await,
        "/batch" => {
            use bindings::wasi::keyvalue::{batch, store};
            let bucket = store::open(query).unwrap();
            bucket.set("a", b"one").unwrap();
            format!("{:?}", batch::get_many(&bucket, &["a".to_owned(), "none".to_owned()]))
        }
        "/folders" => format!("{:?}", get_directories().into_iter().map(|(_, name)| name).collect::<Vec<_>>()),
        "/environment" => format!("{:?}", wasip3::cli::environment::get_environment()),
        "/look-up" => {
            use wasip3::sockets::ip_name_lookup::resolve_addresses;
            format!("{:?}", resolve_addresses(query.to_owned()).await)
        }
        "/read" => read(query).await,
        "/waits" => waits(query.parse().unwrap_or(1)).await,
        "/fetch" => fetch(query).await,
        "/sockets" => {
            use wasip3::sockets::types::{IpAddressFamily, TcpSocket};
            format!("{:?}", TcpSocket::create(IpAddressFamily::Ipv4).map(drop))
        }
        _ => "no such path".to_owned(),
    }
}

async fn key_value(label: &str) -> String {
    use bindings::spin::key_value::key_value::Store;
    let store = match Store::open(label.to_owned()).await {
        Ok(store) => store,
        Err(error) => return format!("{error:?}"),
    };
    let set = store.set("a".to_owned(), b"one".to_vec()).await;
    let found = store.get("a".to_owned()).await.map(|value| value.map(|bytes| String::from_utf8(bytes).unwrap()));
    let exists = store.exists("a".to_owned()).await;
    let (keys, end) = store.get_keys().await;
    let (keys, end) = (keys.collect().await, end.await);
    let deleted = store.delete("a".to_owned()).await;
    format!("{set:?} {found:?} {exists:?} {keys:?} {end:?} {deleted:?}")
}

/// `FOLDER&PATH`.
async fn read(query: &str) -> String {
    let (place, path) = query.split_once('&').unwrap();
    let Some((folder, _)) = get_directories().into_iter().find(|(_, name)| name == place) else {
        return format!("no folder {place}");
    };
    let opened =
        folder.open_at(PathFlags::SYMLINK_FOLLOW, path.to_owned(), OpenFlags::empty(), DescriptorFlags::READ).await;
    match opened {
        Ok(file) => {
            let (bytes, end) = file.read_via_stream(0);
            let bytes = bytes.collect().await;
            format!("{} {:?}", String::from_utf8_lossy(&bytes), end.await)
        }
        Err(error) => format!("{error:?}"),
    }
}

/// Nanoseconds that so many waits of a nanosecond take.
async fn waits(n: u64) -> String {
    let begin = monotonic_clock::now();
    for _ in 0..n {
        monotonic_clock::wait_for(1).await;
        monotonic_clock::wait_until(monotonic_clock::now() + 1).await;
    }
    (monotonic_clock::now() - begin).to_string()
}

async fn fetch(url: &str) -> String {
    let (_, rest) = url.split_once("://").unwrap();
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let (trailers, trailers_reader) = wit_future::new(|| Ok(None));
    drop(trailers);
    let (request, _sent) = Request::new(Fields::new(), None, trailers_reader, None);
    request.set_scheme(Some(&Scheme::Http)).unwrap();
    request.set_authority(Some(authority)).unwrap();
    request.set_path_with_query(Some(path)).unwrap();
    let response = match client::send(request).await {
        Ok(response) => response,
        Err(error) => return format!("{error:?}"),
    };
    let status = response.get_status_code();
    let (done, done_reader) = wit_future::new(|| Ok(()));
    drop(done);
    let (body, trailers) = Response::consume_body(response, done_reader);
    let body = body.collect().await;
    let end = trailers.await.map(drop);
    format!("{status} {} {end:?}", String::from_utf8_lossy(&body))
}
