//! Tools that misbehave, and some that do not.

use bindings::exports::nala::tools::provider::Guest;
use bindings::nala::tools::report;
use bindings::nala::tools::types::{Annotations, Answer, Content, Error, Progress, Tool};
use wasip2::clocks::monotonic_clock::subscribe_duration;

mod bindings {
    #![allow(missing_docs, reason = "generated")]
    wit_bindgen::generate!({
        path: ["../../../../wit/wasi-io", "../../../../wit/nala-tools"],
        world: "nala:tools/tool",
        generate_all,
    });
    export!(Tools with_types_in self);
    use super::Tools;
}

struct Tools;

const NAMES: [&str; 14] = [
    "echo",
    "state",
    "progress",
    "forever",
    "sleeps",
    "memory",
    "large",
    "many-parts",
    "no-json",
    "promises",
    "traps",
    "exits",
    "refuses",
    "environment",
];

static CALLS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

impl Guest for Tools {
    fn describe() -> Vec<Tool> {
        NAMES
            .map(|name| Tool {
                name: name.into(),
                title: None,
                description: format!("What {name} does."),
                input_schema: "{\"type\": \"object\"}".into(),
                output_schema: (name == "promises").then(|| "{\"type\": \"object\"}".into()),
                annotations: Annotations { read_only: None, destructive: None, idempotent: None, open_world: None },
            })
            .into()
    }

    fn call(name: String, arguments: String) -> Result<Answer, Error> {
        let text = |text: String| Answer { content: vec![Content::Text(text)], structured: None, is_error: false };
        match name.as_str() {
            "echo" => Ok(text(arguments)),
            "state" => Ok(text(CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string())),
            "progress" => {
                for done in 1..=3 {
                    let message = Some(format!("part {done}"));
                    report::tell(&Progress { done: f64::from(done), total: Some(3.0), message });
                    subscribe_duration(20_000_000).block();
                }
                Ok(text("done".into()))
            }
            "forever" => loop {
                std::hint::spin_loop();
            },
            "sleeps" => {
                subscribe_duration(3_600_000_000_000).block();
                Ok(text("awake".into()))
            }
            "memory" => {
                let mut all: Vec<Vec<u8>> = Vec::new();
                loop {
                    all.push(vec![1; 1 << 20]);
                }
            }
            "large" => Ok(text("x".repeat(20 << 20))),
            "many-parts" => {
                let content = (0..100_000).map(|_| Content::Text(String::new())).collect();
                Ok(Answer { content, structured: None, is_error: false })
            }
            "no-json" => Ok(Answer { structured: Some("{".into()), ..text("{".into()) }),
            "promises" => Ok(text("nothing".into())),
            "traps" => panic!("on purpose"),
            "exits" => std::process::exit(0),
            "refuses" => Err(Error::InvalidArguments("not these".into())),
            "environment" => Ok(text(format!("{:?}", std::env::vars().collect::<Vec<_>>()))),
            other => Err(Error::UnknownTool(other.into())),
        }
    }
}
