//! `nala:chat`: a guest's prompts, rendered by another component.
//!
//! The renderer runs in a store of its own, fresh for each call, under its own
//! limits: whatever a template does, the guest gets an error and lives on.

pub(crate) mod renderer;

use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::error::HandleError;
use crate::store::StoreData;
use bindings::nala::chat::{render, types};

pub(crate) mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/nala-chat",
        world: "nala:chat/user",
        imports: { default: async | trappable },
        require_store_data_send: true,
    });
}

struct HasChat;

impl HasData for HasChat {
    type Data<'a> = &'a mut StoreData;
}

pub(crate) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    types::add_to_linker::<_, HasChat>(linker, |data| data)?;
    render::add_to_linker::<_, HasChat>(linker, |data| data)
}

impl types::Host for StoreData {}

impl render::Host for StoreData {
    async fn render(&mut self, request: types::Request) -> Result<Result<Vec<types::Piece>, types::Error>> {
        let Some(renderer) = self.renderer.clone() else {
            let text = "no component renders prompts for this one; name one as its `renderer`";
            return Ok(Err(types::Error::Failed(text.into())));
        };
        let rendered = renderer.render(&request, &self.cpu, &self.account, self.request.clone()).await;
        self.cpu.check()?;
        Ok(rendered.unwrap_or_else(|error| Err(types::Error::Failed(failure(renderer.name(), &error)))))
    }
}

/// What befell the component `name`, which renders, for the one that asked it to.
fn failure(name: &str, error: &HandleError) -> String {
    let what = match error {
        HandleError::Trap { reason } => format!("trapped: {reason}; this is its fault, its log tells more"),
        HandleError::CpuLimit => "used up its CPU time; raise its `cpu` limit, or use a simpler template".into(),
        HandleError::MemoryLimit => "ran out of memory; raise its `memory` limit, or use a simpler template".into(),
        HandleError::WallLimit => "did not finish within its wall time; raise its `wall` limit".into(),
        HandleError::AtCapacity => "found no room for another instance; try again later".into(),
        HandleError::Tenant(exceeded) => format!("had no room: {exceeded}"),
        HandleError::NoResponse { reason } => format!("gave no answer: {reason}"),
    };
    format!("`{name}`, which renders prompts, {what}")
}
