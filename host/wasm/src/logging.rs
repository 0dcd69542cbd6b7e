//! `wasi:logging/logging`: records of a guest, within the bytes that its output
//! may have.

use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::stdio::LogStream;
use crate::store::StoreData;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/wasi-logging",
        world: "wasi:logging/imports",
        imports: { default: trappable },
    });
}

use bindings::wasi::logging::logging::{Host, Level, add_to_linker as add};

struct HasLog;

impl HasData for HasLog {
    type Data<'a> = &'a mut LogStream;
}

pub(crate) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    add::<_, HasLog>(linker, |data| &mut data.log)
}

impl Host for LogStream {
    fn log(&mut self, level: Level, context: String, message: String) -> Result<()> {
        let level = match level {
            Level::Trace => tracing::Level::TRACE,
            Level::Debug => tracing::Level::DEBUG,
            Level::Info => tracing::Level::INFO,
            Level::Warn => tracing::Level::WARN,
            // tracing has nothing above it.
            Level::Error | Level::Critical => tracing::Level::ERROR,
        };
        self.record(level, &context, &message);
        Ok(())
    }
}
