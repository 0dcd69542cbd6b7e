//! The operator's listener.

use std::sync::{Arc, RwLock};

use nala_http::{AdminHandler, HttpConfig, HttpMetrics, Phase, Readiness};
use prometheus_client::registry::Registry;

use crate::harness::{Client, start};

#[tokio::test]
async fn probes_and_metrics_are_served() {
    let metrics = HttpMetrics::default();
    let mut registry = Registry::with_prefix("nala");
    metrics.register(&mut registry);
    let readiness = Readiness::new(Phase::Starting);
    let admin = AdminHandler::new(Arc::new(RwLock::new(registry)), readiness.clone());
    let server = start(HttpConfig::default(), admin).await;
    let mut client = Client::connect(server.addr).await;

    client.get("/livez").await;
    assert!(client.until("ready").await.starts_with("HTTP/1.1 200"));
    client.get("/readyz").await;
    assert!(client.until("starting").await.starts_with("HTTP/1.1 503"));
    readiness.set(Phase::Ready);
    client.get("/readyz").await;
    assert!(client.until("ready").await.starts_with("HTTP/1.1 200"));

    client.get("/metrics").await;
    let answer = client.until("# EOF").await;
    assert!(answer.contains("application/openmetrics-text"), "{answer}");
    assert!(answer.contains("nala_http_request_duration_seconds_bucket"), "{answer}");

    client.get("/other").await;
    assert!(client.until("}}").await.starts_with("HTTP/1.1 404"));
    client.send("POST /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(client.until("}}").await.starts_with("HTTP/1.1 405"));
}
