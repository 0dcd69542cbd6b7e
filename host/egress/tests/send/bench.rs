//! A gate for tests, and requests through it.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use nala_egress::{
    AllowList, ConnectionLimit, Egress, EgressError, EgressMetrics, Gate, GateConfig, Owner, Resolve, Resolved,
    ResponseBody, Timeouts, TrustRoots,
};
use prometheus_client::registry::Registry;

/// Answers with one list after the other; the last one stays.
#[derive(Default)]
pub(crate) struct Names {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    pub(crate) asked: AtomicUsize,
}

impl Names {
    pub(crate) fn answer(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|a| a.parse().unwrap()).collect();
        Arc::new(Self { answers: Mutex::new(answers.iter().map(parse).collect()), asked: AtomicUsize::new(0) })
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolved<'a> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Box::pin(async move {
            match answer {
                Some(answer) if answer.is_empty() => std::future::pending().await,
                Some(answer) => Ok(answer),
                None => Err(io::Error::other(format!("{name} is not known"))),
            }
        })
    }
}

/// Times that no test reaches unless it is about them.
pub(crate) fn config() -> GateConfig {
    GateConfig { roots: TrustRoots::Only(Vec::new()), ..GateConfig::default() }
}

pub(crate) struct Bench {
    pub(crate) gate: Gate,
    registry: Registry,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(config(), Names::answer(&[]), ConnectionLimit::new(100, 100))
    }

    pub(crate) fn with(config: GateConfig, names: Arc<Names>, limit: ConnectionLimit) -> Self {
        let metrics = EgressMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let gate = Gate::new(config, names, Arc::new(limit), metrics).unwrap();
        Self { gate, registry }
    }

    pub(crate) fn egress(&self, entries: &[&str]) -> Egress {
        self.of("tenant", entries)
    }

    pub(crate) fn of(&self, tenant: &str, entries: &[&str]) -> Egress {
        self.gate.egress(Owner::new(tenant, "component"), AllowList::parse(entries).unwrap())
    }

    /// The value of a line of the metrics.
    pub(crate) fn metric(&self, line: &str) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let found = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(' '));
        found.map_or(0, |value| value.parse().unwrap())
    }

    /// Waits until a metric has a value, and fails after five seconds.
    pub(crate) async fn until(&self, line: &str, value: u64) {
        for _ in 0..500 {
            if self.metric(line) == value {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{line} is {} and not {value}", self.metric(line));
    }
}

pub(crate) type Answer = Result<Response<ResponseBody>, EgressError>;

pub(crate) async fn get(egress: &Egress, uri: &str) -> Answer {
    get_within(egress, uri, Timeouts::UNSET).await
}

pub(crate) async fn get_within(egress: &Egress, uri: &str, timeouts: Timeouts) -> Answer {
    egress.send(Request::get(uri).body(Full::new(Bytes::new())).unwrap(), timeouts).await
}

pub(crate) async fn text(response: Response<ResponseBody>) -> Result<String, EgressError> {
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

/// The text of a response that has to come.
pub(crate) async fn got(egress: &Egress, uri: &str) -> String {
    text(get(egress, uri).await.unwrap()).await.unwrap()
}

/// The `error-code` of a request that has to fail.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, EgressError>) -> &'static str {
    result.unwrap_err().code()
}

pub(crate) fn short(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// What is logged, as text.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Of this thread, until what is given is dropped.
    pub(crate) fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || log.clone()).finish();
        tracing::subscriber::set_default(subscriber)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}
