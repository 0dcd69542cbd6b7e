//! The interface `meter`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use wasmtime::Result;

use super::LlmView;
use super::bindings::nala::llm::meter::{Host, Limits, Usage};

impl Host for LlmView<'_> {
    fn used(&mut self) -> Result<Usage> {
        let usage = &self.state.usage;
        Ok(Usage {
            prompt_tokens: usage.prompt_tokens.load(Ordering::Relaxed),
            cached_tokens: usage.cached_tokens.load(Ordering::Relaxed),
            new_tokens: usage.new_tokens.load(Ordering::Relaxed),
            kv_cells: usage.kv_cells.load(Ordering::Relaxed),
            cpu_us: micros(self.cpu.used()),
            queue_us: usage.queue_us.load(Ordering::Relaxed),
            memory_bytes: self.memory.held(),
        })
    }

    fn limit(&mut self) -> Result<Limits> {
        Ok(Limits {
            sessions: self.limits.sessions,
            kv_cells: self.state.max_kv_cells,
            cpu_us: micros(self.limits.cpu),
            wall_us: micros(self.limits.wall),
            memory_bytes: self.limits.memory_bytes,
        })
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
