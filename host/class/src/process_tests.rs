//! A process and its keeper, played within this one.

use std::convert::Infallible;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::fetch::{FetchError, Fetched};
use crate::forward::NoAnswer;
use crate::link::{Doors, Link};

/// Long enough for a loaded machine; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(10);

type Std = std::os::unix::net::UnixStream;
type Answer = Response<http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>>;

/// What a keeper would hold, and the process as the front sees it.
fn kept() -> (Process, Std) {
    let (socket, keeper) = Std::pair().unwrap();
    (Process::follow(Keeper { socket }).unwrap(), keeper)
}

/// A process that lives until the guard is dropped or its link ends.
struct Living(JoinHandle<()>);

impl Drop for Living {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts one, as its keeper would.
async fn start<F, R>(process: &Process, keeper: &Std, answer: F) -> Living
where
    F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Answer> + Send + 'static,
{
    let (front, mine) = Std::pair().unwrap();
    pass::send(keeper, b'l', front.as_fd()).unwrap();
    let (Doors { mut requests, mut operator }, link) = Link::of(mine).serve().unwrap();
    let life = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        let mut link = std::pin::pin!(link);
        loop {
            let stream = tokio::select! {
                Some(stream) = requests.recv() => stream,
                Some(stream) = operator.recv() => stream,
                () = &mut link => return,
            };
            let answer = answer.clone();
            let service = service_fn(move |request| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            connections.spawn(async move {
                let _ended =
                    auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    let mut link = process.link.clone();
    link.wait_for(|state| matches!(state, State::There(_))).await.unwrap();
    Living(life)
}

fn whole(text: &str) -> Answer {
    Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())).boxed_unsync())
}

/// Yields one frame, then nothing for ever; holds `held` all the while.
fn endless(held: oneshot::Sender<()>) -> Answer {
    let first = futures::stream::once(async { Ok(Frame::data(Bytes::from_static(b"first"))) });
    let never = futures::stream::once(async move {
        let _held = held;
        std::future::pending().await
    });
    Response::new(StreamBody::new(futures::StreamExt::chain(first, never)).boxed_unsync())
}

async fn away(process: &Process) {
    process.link.clone().wait_for(|state| matches!(state, State::Away)).await.unwrap();
}

fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(path).header("host", "here").body(Full::default()).unwrap()
}

#[tokio::test]
async fn a_request_goes_over_as_it_came_without_what_is_its_connections() {
    let (process, keeper) = kept();
    let seen: Arc<Mutex<Option<(http::request::Parts, Bytes)>>> = Arc::default();
    let into = Arc::clone(&seen);
    let _living = start(&process, &keeper, move |request| {
        let into = Arc::clone(&into);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            *into.lock().unwrap() = Some((parts, body));
            let mut answer = whole("done");
            *answer.status_mut() = StatusCode::IM_A_TEAPOT;
            answer.headers_mut().insert("x-kept", "yes".parse().unwrap());
            answer
        }
    })
    .await;
    let request = Request::post("/a%2Fb/../c?d=e")
        .header("host", "tenant.example")
        .header("authorization", "Bearer nala_1_2")
        .header("connection", "keep-alive, x-mine, authorization")
        .header("keep-alive", "5")
        .header("x-mine", "1")
        .header("x-mine", "2")
        .header("te", "trailers")
        .header("transfer-encoding", "chunked")
        .header("upgrade", "h2c");
    let request = request.body(Full::new(Bytes::from_static(b"a body"))).unwrap();
    let answer = process.forward(Door::Requests, request).await.unwrap();
    assert_eq!((answer.status(), &answer.headers()["x-kept"]), (StatusCode::IM_A_TEAPOT, &"yes".parse().unwrap()));
    assert!(!answer.headers().contains_key("connection") && !answer.headers().contains_key("transfer-encoding"));
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "done");
    let (parts, body) = seen.lock().unwrap().take().unwrap();
    assert_eq!((parts.method, parts.version, &body[..]), (Method::POST, Version::HTTP_11, &b"a body"[..]));
    assert_eq!(parts.uri.to_string(), "/a%2Fb/../c?d=e");
    let names: Vec<_> =
        parts.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    assert_eq!(
        names,
        [
            "host: tenant.example",
            "authorization: Bearer nala_1_2",
            "x-mine: 1",
            "x-mine: 2",
            "te: trailers",
            "content-length: 6"
        ]
    );
}

#[tokio::test]
async fn a_request_of_http2_stays_one_and_its_trailers_come_back() {
    let (process, keeper) = kept();
    let living = start(&process, &keeper, |request| async move {
        assert_eq!(request.version(), Version::HTTP_2);
        assert_eq!(request.uri().authority().unwrap(), "tenant.example");
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "5".parse().unwrap());
        let frames = [Ok(Frame::data(Bytes::from_static(b"text"))), Ok(Frame::trailers(trailers))];
        Response::new(StreamBody::new(futures::stream::iter(frames)).boxed_unsync())
    })
    .await;
    let request = Request::get("http://tenant.example/x").version(Version::HTTP_2).body(Full::default()).unwrap();
    let answer = process.forward(Door::Requests, request).await.unwrap();
    let whole = answer.into_body().collect().await.unwrap();
    assert_eq!(whole.trailers().unwrap()["x-sum"], "5");
    // One that names its host by a header only goes by the other version.
    drop(living);
    away(&process).await;
    let _living = start(&process, &keeper, |request| async move { whole_of(&request) }).await;
    let request = Request::get("/x").version(Version::HTTP_2).header("host", "there").body(Full::default()).unwrap();
    let answer = process.forward(Door::Requests, request).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "HTTP/1.1 /x there");
}

fn whole_of(request: &Request<Incoming>) -> Answer {
    let host = request.headers()["host"].to_str().unwrap();
    whole(&format!("{:?} {} {host}", request.version(), request.uri()))
}

#[tokio::test]
async fn whoever_drops_the_answer_or_no_longer_waits_for_it_is_noticed_at_once() {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let (process, keeper) = kept();
        let (held, dropped) = oneshot::channel();
        let (held_early, dropped_early) = oneshot::channel::<()>();
        let held = Arc::new(Mutex::new((Some(held), Some(held_early))));
        let _living = start(&process, &keeper, move |request| {
            let held = Arc::clone(&held);
            async move {
                if request.uri().path() == "/stream" {
                    let held = held.lock().unwrap().0.take().unwrap();
                    return endless(held);
                }
                let _held = held.lock().unwrap().1.take().unwrap();
                std::future::pending().await
            }
        })
        .await;
        let ask = |path: &str| {
            let request = Request::get(format!("http://here{path}")).version(version).header("host", "here");
            process.forward(Door::Requests, request.body(Full::<Bytes>::default()).unwrap())
        };
        let mut body = ask("/stream").await.unwrap().into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "first");
        drop(body);
        timeout(PATIENCE, dropped).await.expect("the stream outlived its client").unwrap_err();
        let early = timeout(Duration::from_millis(300), ask("/wait")).await;
        assert!(early.is_err(), "it was answered");
        timeout(PATIENCE, dropped_early).await.expect("the handler outlived its client").unwrap_err();
    }
}

#[tokio::test]
async fn a_process_that_ends_breaks_what_it_answers_and_the_next_one_is_asked() {
    let (process, keeper) = kept();
    assert_eq!(process.forward(Door::Requests, get("/")).await.unwrap_err(), NoAnswer::Away(Away));
    let (held, _dropped) = oneshot::channel();
    let held = Arc::new(Mutex::new(Some(held)));
    let living = start(&process, &keeper, move |_| {
        let held = held.lock().unwrap().take().unwrap();
        async move { endless(held) }
    })
    .await;
    assert!(process.is_there());
    let mut body = process.forward(Door::Requests, get("/")).await.unwrap().into_body();
    assert!(body.frame().await.unwrap().is_ok());
    drop(living);
    let broken = timeout(PATIENCE, body.frame()).await.expect("it never ends");
    assert!(broken.unwrap().is_err(), "it must not look like the end");
    away(&process).await;
    assert_eq!(process.forward(Door::Requests, get("/")).await.unwrap_err(), NoAnswer::Away(Away));

    let _living = start(&process, &keeper, |_| async { whole("second") }).await;
    let answer = process.forward(Door::Requests, get("/")).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "second");
}

#[tokio::test]
async fn a_process_that_says_something_of_itself_is_no_more_asked() {
    let (process, keeper) = kept();
    let (front, mut mine) = Std::pair().unwrap();
    pass::send(&keeper, b'l', front.as_fd()).unwrap();
    drop(front);
    process.link.clone().wait_for(|state| matches!(state, State::There(_))).await.unwrap();
    std::io::Write::write_all(&mut mine, b"x").unwrap();
    let gone = async { process.link.clone().wait_for(|state| matches!(state, State::Away)).await.map(drop) };
    timeout(PATIENCE, gone).await.expect("it is still asked").unwrap();
}

#[tokio::test]
async fn the_process_hears_that_it_is_to_end_and_is_waited_for() {
    let (process, mut keeper) = kept();
    let living = start(&process, &keeper, |_| async { whole("") }).await;
    let stop = tokio::spawn({
        let process = process.clone();
        async move { process.stop(PATIENCE).await }
    });
    // Its link ends, and so it does.
    let mut life = living;
    timeout(PATIENCE, &mut life.0).await.expect("it does not hear of the end").unwrap();
    // Then the keeper's, which ends after it.
    let heard = tokio::task::spawn_blocking(move || {
        std::io::Read::read(&mut keeper, &mut [0]).unwrap();
        keeper
    });
    let keeper = timeout(PATIENCE, heard).await.expect("its keeper does not").unwrap();
    assert!(!stop.is_finished(), "the keeper is still there");
    drop(keeper);
    timeout(PATIENCE, stop).await.unwrap().unwrap();
    timeout(PATIENCE, process.lost()).await.unwrap();
}

#[tokio::test]
async fn what_is_fetched_is_bounded() {
    let (process, keeper) = kept();
    assert_eq!(process.fetch("/x").await.unwrap_err(), FetchError::NoAnswer(NoAnswer::Away(Away)));
    let _living = start(&process, &keeper, |request| async move {
        match request.uri().path() {
            "/late" => std::future::pending().await,
            "/long" => {
                let piece = Bytes::from(vec![b'x'; 1 << 20]);
                let endless = futures::stream::repeat_with(move || Ok(Frame::data(piece.clone())));
                Response::new(StreamBody::new(endless).boxed_unsync())
            }
            "/bytes" => Response::new(Full::new(Bytes::from_static(b"\xff")).boxed_unsync()),
            _ => whole(request.headers()["host"].to_str().unwrap()),
        }
    })
    .await;
    let fetched = process.fetch("/x").await.unwrap();
    assert_eq!(fetched, Fetched { status: StatusCode::OK, text: "localhost".into() });
    assert_eq!(process.fetch("/late").await.unwrap_err(), FetchError::Late);
    for path in ["/long", "/bytes"] {
        assert!(matches!(process.fetch(path).await, Err(FetchError::Unusable(_))), "{path}");
    }
}
