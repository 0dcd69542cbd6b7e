//! The component that renders chat templates.

use std::sync::Arc;

use wasmtime::component::InstancePre;

use super::bindings::nala::chat::types::{Error, Piece, Request};
use crate::account::Account;
use crate::control::RequestControl;
use crate::cpu::CpuClock;
use crate::error::HandleError;
use crate::load::LoadError;
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
    ) -> Result<Self, LoadError> {
        let pre = bindings::RendererPre::new(pre).map_err(|_| no_renderer(&blueprint.app))?;
        Ok(Self { blueprint, pre, metrics })
    }

    /// Refuses a component that is no renderer.
    pub(crate) fn refuse_other(name: &str, pre: &InstancePre<StoreData>) -> Result<(), LoadError> {
        bindings::RendererPre::new(pre.clone()).map(drop).map_err(|_| no_renderer(name))
    }

    /// The component's name.
    pub(crate) fn name(&self) -> &str {
        &self.blueprint.app
    }

    /// Renders a conversation in a fresh instance, on the account of `caller`, for the
    /// request `of`.
    ///
    /// The outer error is one of the renderer itself, the inner one its answer.
    pub(crate) async fn render(
        &self,
        request: &Request,
        caller: &CpuClock,
        account: &Arc<Account>,
        of: Option<Arc<RequestControl>>,
    ) -> Result<Result<Vec<Piece>, Error>, HandleError> {
        self.metrics.renders.inc();
        let _place = account.place(self.blueprint.limits.handles).map_err(HandleError::Tenant)?;
        let outcome = Arc::new(Outcome::default());
        // Before the store, so that it is dropped after it.
        let mut alive = None;
        let mut store = self.blueprint.store(account, of, Arc::clone(&outcome));
        let cpu = Arc::clone(&store.data().cpu);
        let work = async {
            let renderer = self.pre.instantiate_async(&mut store).await?;
            alive = Some(self.metrics.instance());
            renderer.nala_chat_render().call_render(&mut store, request).await
        };
        // The renderer works in the caller's polls, and both would count them.
        caller.pause();
        let rendered = tokio::time::timeout(self.blueprint.limits.wall, cpu.follow(work)).await;
        caller.take_over(&cpu);
        caller.resume();
        drop(store);
        drop(alive);
        match rendered {
            Ok(answer) => answer.map_err(|error| HandleError::of(&error, &outcome)),
            Err(_) => Err(HandleError::WallLimit),
        }
    }
}

fn no_renderer(name: &str) -> LoadError {
    LoadError::MissingExport {
        name: name.to_owned(),
        wanted: "`nala:chat/render@0.1.0`",
        fix: "a renderer implements the world `nala:chat/renderer`",
    }
}
