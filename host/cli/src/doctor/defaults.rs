//! Every default in force, from the types that hold them.

use std::time::Duration;

use clap::Parser;
use nala_engine::{CompanyConfig, EngineConfig, PoolConfig};
use nala_http::HttpConfig;
use nala_machine::Machine;
use nala_wasm::{CompileCache, Limits, RuntimeConfig};

use super::Setting;
use crate::args::{CodeArgs, EngineArgs, ModelsArgs};
use crate::models;
use crate::models::mebibytes;
use crate::serve;

/// The models', the engine's and the code's flags alone, to have their defaults and their
/// environment variables.
#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    models: ModelsArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    code: CodeArgs,
}

pub(super) fn all(machine: &Machine) -> Vec<Setting> {
    let mut settings = Vec::new();
    if let Ok(flags) = Flags::try_parse_from(["nala-host"]) {
        settings.extend(pool(&flags.models));
        settings.extend(engine(&flags.engine, machine));
        settings.extend(runtime(&flags.code));
    }
    settings.extend(limits("limits of a request", &Limits::default()));
    settings.extend(limits("limits of a renderer", &Limits::renderer()));
    settings.extend(limits("limits of a call of a tool", &Limits::tool()));
    settings.extend(tenant());
    settings.extend(http());
    settings
}

/// Limits of a tenant that is declared; the one owner of a machine has none.
fn tenant() -> Vec<Setting> {
    let limits = nala_tenant::Limits::default();
    let rows = limits.iter().map(|(limit, value)| {
        let row = limit.row();
        Setting { section: "limits of a tenant", name: row.name, value: row.unit.show(value), meaning: row.meaning }
    });
    rows.collect()
}

fn lower(value: impl std::fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}

fn seconds(time: Duration) -> String {
    if time.subsec_nanos() == 0 { format!("{} s", time.as_secs()) } else { format!("{} ms", time.as_millis()) }
}

fn pool(args: &ModelsArgs) -> Vec<Setting> {
    let section = "models";
    let setting = |name, value, meaning| Setting { section, name, value, meaning };
    // Named one by one, so that a new field cannot be forgotten here.
    let PoolConfig { budget: _, idle: _, max_wait, retry_after } = PoolConfig::default();
    let budget = args.model_memory.or_else(models::default_budget).map_or_else(|| "no bound".to_owned(), mebibytes);
    let idle = args.idle().map_or_else(|| "never".to_owned(), seconds);
    vec![
        setting("memory", budget, "for the models loaded at a time (--model-memory)"),
        setting("idle", idle, "after which a model that nobody uses is unloaded (--model-idle)"),
        setting("max_wait", seconds(max_wait), "how long a request waits for a model before it is refused as busy"),
        setting("retry_after", seconds(retry_after), "before a load that failed is tried again"),
    ]
}

fn engine(args: &EngineArgs, machine: &Machine) -> Vec<Setting> {
    let section = "engine";
    let setting = |name, value, meaning| Setting { section, name, value, meaning };
    let load = models::options(args);
    let EngineConfig {
        max_sessions,
        max_queued,
        max_wait,
        prefill_chunk,
        step_time,
        outbox_tokens,
        snapshot_bytes,
        max_saved,
        max_draft: _,
        company: CompanyConfig { step_time: company_step_time, at_once, part, stretch },
    } = EngineConfig::default();
    let threads = load.threads.map_or(machine.grant.threads, std::num::NonZeroUsize::get);
    vec![
        setting("threads", threads.to_string(), "threads that compute (--threads)"),
        setting("pin_threads", lower(load.pinning), "whether each keeps a CPU to itself (--pin-threads)"),
        setting("kv_cells", load.kv_cells.to_string(), "tokens of context, shared by all sessions (--kv-cells)"),
        setting("max_sequences", load.max_sequences.to_string(), "sequences computed together (--max-sequences)"),
        setting("batch_tokens", load.batch_tokens.to_string(), "tokens of a batch at most (--batch-tokens)"),
        setting("micro_batch_tokens", load.micro_batch_tokens.to_string(), "tokens computed at once"),
        setting(
            "embedding_tokens",
            load.longest_embedding().to_string(),
            "tokens of the longest text that is embedded (--embedding-tokens)",
        ),
        setting("flash_attention", lower(load.flash_attention), "fused attention kernel (--flash-attention)"),
        setting("cache_type_k", lower(load.kv_keys), "how KV cells keep keys (--cache-type-k)"),
        setting("cache_type_v", lower(load.kv_values), "how KV cells keep values (--cache-type-v)"),
        setting("max_sessions", max_sessions.to_string(), "sessions open at a time; further ones are refused as busy"),
        setting("max_queued", max_queued.to_string(), "work waiting for room; further work is refused as busy"),
        setting("max_wait", seconds(max_wait), "how long work waits for room before it is refused as busy"),
        setting("prefill_chunk", prefill_chunk.to_string(), "prompt tokens in a batch beside running generations"),
        setting("step_time", seconds(step_time), "how long a batch with prompt tokens should take at the most"),
        setting("outbox_tokens", outbox_tokens.to_string(), "tokens kept for a slow reader before its run pauses"),
        setting("snapshot_bytes", mebibytes(snapshot_bytes), "RAM for the state of parked and saved sessions"),
        setting("max_saved", max_saved.to_string(), "sessions that can be saved in a scope"),
        setting(
            "max_draft",
            args.max_draft.to_string(),
            "tokens guessed ahead at most, where that is faster (--max-draft)",
        ),
        setting("company.step_time", seconds(company_step_time), "the same as step_time with several tenants at work"),
        setting("company.at_once", seconds(at_once), "for which a tenant's prompts may hold up others at once"),
        setting("company.part", format!("1/{part}"), "of all time that they may hold up others"),
        setting("company.stretch", format!("{stretch} %"), "that steps may be longer for prompts beyond that"),
    ]
}

fn runtime(args: &CodeArgs) -> Vec<Setting> {
    let section = "components";
    let setting = |name, value, meaning| Setting { section, name, value, meaning };
    let RuntimeConfig { tick, instances, max_memory_bytes, admission_wait, tokenisers, guest_threads, cache: _ } =
        RuntimeConfig::default();
    let cache = match serve::cache(args) {
        CompileCache::Off => "off".to_owned(),
        CompileCache::Directory(dir) => dir.display().to_string(),
    };
    vec![
        setting("cache", cache, "folder of compiled components (--cache-dir, --no-cache)"),
        setting("instances", instances.to_string(), "requests handled at a time"),
        setting("admission_wait", seconds(admission_wait), "how long a request waits for an instance before a 429"),
        setting("tokenisers", tokenisers.to_string(), "long texts turned into tokens at a time"),
        setting(
            "guest_threads",
            guest_threads.to_string(),
            "threads for components that compute for long, and step back behind others",
        ),
        setting("tick", seconds(tick), "grain of CPU limits and of turns between guests"),
        setting("max_memory", mebibytes(max_memory_bytes as u64), "the most memory a component can be given"),
    ]
}

fn limits(section: &'static str, limits: &Limits) -> Vec<Setting> {
    limits
        .entries()
        .map(|entry| Setting { section, name: entry.name, value: entry.value, meaning: entry.meaning })
        .collect()
}

fn http() -> Vec<Setting> {
    let section = "HTTP";
    let setting = |name, value, meaning| Setting { section, name, value, meaning };
    // Named one by one, so that a new field cannot be forgotten here.
    let HttpConfig {
        max_body_bytes,
        max_header_bytes,
        max_connections,
        max_streams,
        header_timeout,
        body_timeout,
        body_rate,
        idle_timeout,
        write_timeout,
        drain_deadline,
        lame_duck,
    } = HttpConfig::default();
    vec![
        setting("listen", "127.0.0.1:3000".to_owned(), "where requests are taken (--listen)"),
        setting("admin_listen", "none".to_owned(), "where probes and metrics are (--admin-listen)"),
        setting("max_body_bytes", mebibytes(max_body_bytes), "largest request body (--max-body-bytes)"),
        setting("max_header_bytes", format!("{} KiB", max_header_bytes >> 10), "largest request head"),
        setting("max_connections", max_connections.to_string(), "connections open at once (--max-connections)"),
        setting("max_streams", max_streams.to_string(), "requests at once on an HTTP/2 connection"),
        setting("header_timeout", seconds(header_timeout), "for the head of a request to arrive"),
        setting("body_timeout", seconds(body_timeout), "longest silence within a request body"),
        setting("body_rate", format!("{body_rate} B/s"), "least pace of a request body that is waited for"),
        setting("idle_timeout", seconds(idle_timeout), "how long a connection without a request is kept"),
        setting("write_timeout", seconds(write_timeout), "how long a client may take nothing of a response"),
        setting("drain_deadline", seconds(drain_deadline), "for running responses after SIGTERM (--drain-deadline)"),
        setting("lame_duck", seconds(lame_duck), "still accepting after SIGTERM (--lame-duck)"),
    ]
}
