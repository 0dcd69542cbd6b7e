//! The component that renders chat templates.

use std::sync::Arc;

use wasmtime::component::InstancePre;

use super::bindings::nala::chat::types::{Error, Piece, Request};
use crate::control::Slot;
use crate::error::{CpuUsedUp, HandleError};
use crate::metrics::RuntimeMetrics;
use crate::outcome::Outcome;
use crate::store::{Blueprint, StoreData};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/nala-chat",
        world: "nala:chat/renderer",
        exports: { default: async },
        require_store_data_send: true,
        with: { "nala:chat/types": crate::chat::bindings::nala::chat::types },
    });
}

/// A component that renders chat templates, see [`crate::Runtime::load_renderer`].
pub struct Renderer {
    blueprint: Blueprint,
    pre: bindings::RendererPre<StoreData>,
    metrics: RuntimeMetrics,
}

impl Renderer {
    pub(crate) fn new(
        metrics: RuntimeMetrics,
        blueprint: Blueprint,
        pre: InstancePre<StoreData>,
    ) -> wasmtime::Result<Self> {
        Ok(Self { blueprint, pre: bindings::RendererPre::new(pre)?, metrics })
    }

    /// Renders a conversation in a fresh instance.
    ///
    /// The outer error is one of the renderer itself, the inner one its answer.
    pub(crate) async fn render(&self, request: &Request) -> Result<Result<Vec<Piece>, Error>, HandleError> {
        self.metrics.renders.inc();
        let outcome = Arc::new(Outcome::default());
        let mut store = self.blueprint.store(Slot::default(), Arc::clone(&outcome));
        let cpu = Arc::clone(&store.data().cpu);
        let work = async {
            let renderer = self
                .pre
                .instantiate_async(&mut store)
                .await
                .map_err(|e| HandleError::at_start(&e, outcome.memory_refused()))?;
            renderer.nala_chat_render().call_render(&mut store, request).await.map_err(|error| {
                if error.is::<CpuUsedUp>() {
                    HandleError::CpuLimit
                } else if outcome.memory_refused() {
                    HandleError::MemoryLimit
                } else {
                    HandleError::Trap { reason: error.root_cause().to_string() }
                }
            })
        };
        tokio::time::timeout(self.blueprint.limits.wall, cpu.follow(work)).await.unwrap_or(Err(HandleError::WallLimit))
    }
}
