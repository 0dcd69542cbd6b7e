//! What components export to be asked.

use wasmtime::component::InstancePre;
use wasmtime::{Result, Store};

use super::bindings::nala::tools::types::{Catalogue, Error, Tool};
use super::job::{Job, Said};
use super::library;
use super::plain::Plain;
use crate::store::StoreData;

/// The bindings of a world, with the types that callers have as well.
macro_rules! bindings {
    ($world:tt) => {
        wasmtime::component::bindgen!({
            path: ["../../wit/wasi-io", "../../wit/nala-tools"],
            world: $world,
            imports: { default: async | trappable },
            exports: { default: async },
            require_store_data_send: true,
            with: {
                "nala:tools/types": crate::tools::bindings::nala::tools::types,
                "nala:tools/report": crate::tools::bindings::nala::tools::report,
            },
        });
    };
}

mod tool {
    bindings!("nala:tools/tool");
}

mod source {
    bindings!("nala:tools/source");
}

/// An instance for several calls.
pub(super) struct Instance(tool::Tool);

impl Instance {
    /// Calls a tool in it.
    pub(super) async fn call(
        &self,
        store: &mut Store<StoreData>,
        tool: &str,
        arguments: &str,
    ) -> Result<Result<Said, Error>> {
        let answer = self.0.nala_tools_provider().call_call(store, tool, arguments).await?;
        Ok(answer.map(Said::Answer))
    }
}

/// The exports of a component that has tools, resources and prompts, or one of them.
pub(super) struct Exports {
    tool: Option<tool::ToolPre<StoreData>>,
    source: Option<source::SourcePre<StoreData>>,
    /// Its other exports, where it has neither.
    plain: Option<Plain>,
}

impl Exports {
    /// None: it has nothing to be asked.
    pub(super) fn of(pre: InstancePre<StoreData>) -> Option<Self> {
        let tool = tool::ToolPre::new(pre.clone()).ok();
        let source = source::SourcePre::new(pre.clone()).ok();
        let plain = if tool.is_none() && source.is_none() { Plain::of(pre) } else { None };
        (tool.is_some() || source.is_some() || plain.is_some()).then_some(Self { tool, source, plain })
    }

    /// Whether it has tools.
    pub(super) fn has_tools(&self) -> bool {
        self.tool.is_some() || self.plain.is_some()
    }

    /// What the host makes of arguments beside their text, in bytes at the most.
    pub(super) fn lowered(&self, most: u32) -> u64 {
        if self.plain.is_some() { most.into() } else { 0 }
    }

    /// Has an instance tell what it has.
    pub(super) async fn describe(&self, store: &mut Store<StoreData>) -> Result<(Vec<Tool>, Catalogue)> {
        if let Some(plain) = &self.plain {
            return Ok((plain.tools(), library::nothing()));
        }
        let mut tools = Vec::new();
        if let Some(pre) = &self.tool {
            let tool = pre.instantiate_async(&mut *store).await?;
            tools = tool.nala_tools_provider().call_describe(&mut *store).await?;
        }
        let mut catalogue = library::nothing();
        if let Some(pre) = &self.source {
            let source = pre.instantiate_async(&mut *store).await?;
            catalogue = source.nala_tools_library().call_describe(&mut *store).await?;
        }
        Ok((tools, catalogue))
    }

    /// Whether calls can share an instance.
    pub(super) fn can_be_kept(&self) -> bool {
        self.tool.is_some()
    }

    /// Makes an instance for several calls.
    pub(super) async fn instance(&self, store: &mut Store<StoreData>) -> Result<Instance> {
        let Some(pre) = &self.tool else { wasmtime::bail!("it has no tools whose instances can be kept") };
        Ok(Instance(pre.instantiate_async(store).await?))
    }

    /// Has an instance do what is asked. `began` is told when it is there.
    pub(super) async fn work(
        &self,
        store: &mut Store<StoreData>,
        job: &Job,
        began: impl FnOnce(),
    ) -> Result<Result<Said, Error>> {
        let nothing = || Ok(Err(Error::UnknownTool(format!("{:?} is not there", job.name()))));
        if let (Job::Call { tool, arguments }, Some(plain)) = (job, &self.plain) {
            let answer = plain.call(store, tool, arguments, began).await?;
            return Ok(answer.map(Said::Answer));
        }
        if let Job::Call { tool, arguments } = job {
            let Some(pre) = &self.tool else { return nothing() };
            let instance = pre.instantiate_async(&mut *store).await?;
            began();
            let answer = instance.nala_tools_provider().call_call(store, tool, arguments).await?;
            return Ok(answer.map(Said::Answer));
        }
        let Some(pre) = &self.source else { return nothing() };
        let instance = pre.instantiate_async(&mut *store).await?;
        began();
        let library = instance.nala_tools_library();
        match job {
            Job::Call { .. } => nothing(),
            Job::Read { uri } => Ok(library.call_read(store, uri).await?.map(Said::Contents)),
            Job::Fill { prompt, arguments } => Ok(library.call_fill(store, prompt, arguments).await?.map(Said::Filled)),
            Job::Complete { subject, name, beginning } => {
                Ok(library.call_complete(store, subject, name, beginning).await?.map(Said::Completion))
            }
        }
    }
}
