//! Every default in force, with what it means and how it is changed.

use nala_engine::EngineConfig;
use nala_http::HttpConfig;
use nala_llama::LoadOptions;
use nala_wasm::{Limits, RuntimeConfig};
use serde::Serialize;

/// Settings that belong together.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) settings: Vec<Setting>,
}

/// One setting.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) meaning: &'static str,
}

fn setting(name: &'static str, value: impl ToString, meaning: &'static str) -> Setting {
    Setting { name, value: value.to_string(), meaning }
}

pub(super) fn groups() -> Vec<Group> {
    vec![
        Group { name: "Limits of a request (spin.toml: [component.NAME.tool.nala.limits])", settings: request() },
        Group { name: "Limits of a renderer of chat templates", settings: limits(&Limits::renderer()) },
        Group { name: "Model", settings: model() },
        Group { name: "Engine", settings: engine() },
        Group { name: "WebAssembly", settings: wasm() },
        Group { name: "HTTP", settings: http() },
    ]
}

fn request() -> Vec<Setting> {
    limits(&Limits::default())
}

fn limits(limits: &Limits) -> Vec<Setting> {
    limits.entries().map(|entry| setting(entry.name, entry.value, entry.meaning)).collect()
}

fn model() -> Vec<Setting> {
    let options = LoadOptions::default();
    vec![
        setting("threads", nala_machine::granted_cpus().threads, "threads that compute (--threads)"),
        setting("kv_cells", options.kv_cells, "KV cells shared by all sessions (--kv-cells)"),
        setting("max_sequences", options.max_sequences, "sequences computed together (--max-sequences)"),
        setting("batch_tokens", options.batch_tokens, "tokens of one batch (--batch-tokens)"),
        setting("micro_batch_tokens", options.micro_batch_tokens, "tokens computed at once"),
        setting("flash_attention", format!("{:?}", options.flash_attention), "how attention is computed"),
    ]
}

fn engine() -> Vec<Setting> {
    let config = EngineConfig::default();
    vec![
        setting("max_sessions", config.max_sessions, "sessions open at a time"),
        setting("max_queued", config.max_queued, "work waiting for a sequence or KV cells"),
        setting("max_wait", format!("{:?}", config.max_wait), "how long such work waits before it is refused as busy"),
        setting("prefill_chunk", config.prefill_chunk, "prompt tokens of a batch beside running generations"),
        setting("outbox_tokens", config.outbox_tokens, "tokens kept for a slow reader before its run pauses"),
    ]
}

fn wasm() -> Vec<Setting> {
    let config = RuntimeConfig::default();
    vec![
        setting("instances", config.instances, "instances at a time"),
        setting("tick", format!("{:?}", config.tick), "how often a running guest lets others run"),
        setting("max_memory_bytes", config.max_memory_bytes, "the most memory any component may be given"),
        setting("admission_wait", format!("{:?}", config.admission_wait), "wait for an instance before 503"),
    ]
}

fn http() -> Vec<Setting> {
    let config = HttpConfig::default();
    vec![
        setting("max_body_bytes", config.max_body_bytes, "largest request body (--max-body-bytes)"),
        setting("max_header_bytes", config.max_header_bytes, "largest head of a request"),
        setting("max_connections", config.max_connections, "connections at a time (--max-connections)"),
        setting("max_streams", config.max_streams, "requests at once on an HTTP/2 connection"),
        setting("header_timeout", format!("{:?}", config.header_timeout), "until the head of a request is complete"),
        setting("body_timeout", format!("{:?}", config.body_timeout), "longest silence in a request body"),
        setting("idle_timeout", format!("{:?}", config.idle_timeout), "a connection without a request is kept"),
        setting("write_timeout", format!("{:?}", config.write_timeout), "a client may leave a write unread"),
        setting("drain_deadline", format!("{:?}", config.drain_deadline), "running responses at the end"),
        setting("lame_duck", format!("{:?}", config.lame_duck), "accepting while probes say 503 (--lame-duck)"),
    ]
}
