//! The host's life in this process, with what is served replaced.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use nala_engine::fake::Fake;
use nala_engine::{
    Backend, BackendLimits, BatchEntry, DecodeError, EngineConfig, LoadedModel, ModelSpec, PoolConfig, Residence,
    SeqId, SessionOptions,
};
use nala_http::HEALTH_PATH;
use nala_manifest::routes::RouteTable;

use super::*;
use crate::args::{Cli, Verb};

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn args(listen: SocketAddr, admin: SocketAddr) -> ServeArgs {
    let (listen, admin) = (listen.to_string(), admin.to_string());
    let line = ["nala-host", "run", "app.wasm", "--no-cache", "--listen", &listen, "--admin-listen", &admin];
    match Cli::read_from(line.map(Into::into)).unwrap().verb {
        Verb::Run(run) => run.serve,
        _ => unreachable!("`run` was asked for"),
    }
}

/// Serves within this process, which keeps its rights.
fn served<P>(args: &ServeArgs, prepare: P) -> anyhow::Result<()>
where
    P: FnOnce(&Preparing) -> anyhow::Result<Prepared> + Send + 'static,
{
    serve(args, Opened::read(args, Console::Plain).unwrap(), Console::Plain, prepare)
}

/// A pool of one model that is loaded.
fn pool(name: &str, load: fn() -> LoadedModel) -> ModelPool {
    let spec = ModelSpec {
        name: name.to_owned(),
        bytes: 0,
        residence: Residence::Resident,
        engine: EngineConfig::default(),
        load: Box::new(move || Ok(load())),
    };
    let pool = ModelPool::new(PoolConfig::default(), vec![spec], tokio::runtime::Handle::current()).unwrap();
    pool.model(name).unwrap().preload().unwrap();
    pool
}

fn prepared(models: ModelPool) -> Prepared {
    Prepared {
        routing: Routing::Table { routes: RouteTable::new(), members: Default::default() },
        models,
        what: "nothing".to_owned(),
        sample: Sample::Get { path: "/".to_owned() },
        watcher: None,
    }
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn what_is_loading_says_so_everywhere() {
    let (listen, admin) = (free(), free());
    let error = served(&args(listen, admin), move |_| {
        for (address, path) in [(listen, HEALTH_PATH), (admin, HEALTH_PATH), (admin, "/readyz")] {
            let answer = get(address, path);
            assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("starting"), "{address}{path}: {answer}");
        }
        let answer = get(listen, "/v1/models");
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("retry-after: 1\r\n") && answer.contains(r#""code":"starting""#), "{answer}");
        anyhow::bail!("all seen")
    });
    assert_eq!(error.unwrap_err().to_string(), "all seen");
}

#[test]
fn an_engine_that_ends_unasked_ends_the_host_with_an_error() {
    let (listen, admin) = (free(), free());
    let (told, answers) = std::sync::mpsc::channel();
    let error = served(&args(listen, admin), move |_| {
        let models = pool("lost", || Fake::default().load());
        let dies = models.clone();
        tokio::runtime::Handle::current().spawn(async move {
            // The host is ready first.
            while !get_apart(admin, "/readyz").await.starts_with("HTTP/1.1 200") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            told.send(get_apart(listen, "/").await).unwrap();
            dies.acquire("lost").await.unwrap().shutdown().await;
        });
        Ok(prepared(models))
    })
    .unwrap_err();
    let answer = answers.recv().unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "requests are routed: {answer}");
    assert!(error.to_string().contains("the model lost ended unasked"), "{error}");
    assert!(error.downcast_ref::<Help>().unwrap().help.contains("start nala-host again"));
    assert!(TcpStream::connect(listen).is_err(), "nothing is served any more");
}

async fn get_apart(address: SocketAddr, path: &'static str) -> String {
    tokio::task::spawn_blocking(move || get(address, path)).await.unwrap()
}

/// A backend whose first decode never ends.
struct Hung;

impl Backend for Hung {
    fn limits(&self) -> BackendLimits {
        Fake::default().backend().limits()
    }

    fn decode(&mut self, _: &[BatchEntry]) -> Result<(), DecodeError> {
        loop {
            std::thread::park();
        }
    }

    fn logits(&self, _: usize) -> Option<&[f32]> {
        None
    }

    fn truncate(&mut self, _: SeqId, _: u32) -> bool {
        true
    }
}

#[tokio::test]
async fn an_engine_that_hangs_is_left_behind() {
    let models = pool("hung", || {
        let backend: Box<dyn FnOnce() -> _ + Send> = Box::new(|| Ok(Box::new(Hung) as Box<dyn Backend>));
        LoadedModel { backend, ..Fake::default().load() }
    });
    let engine = models.acquire("hung").await.unwrap();
    let mut session =
        engine.open_session(SessionOptions { scope: "test".into(), ..SessionOptions::default() }).unwrap();
    tokio::spawn(async move { session.prefill(vec![1]).await.map(|_| ()) });
    // The engine is in its step when it is told to end.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let ended = ending::models(&models, Console::Plain, Duration::from_millis(100));
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("it is waited for without end");
}
