//! `nala:tools`: what a component may call, each call in an instance of its own.
//!
//! A call is a small request: it has its own store, limits and grant, is charged to the
//! tenant that makes it, and ends with whoever asked for it. What a tool does wrong is an
//! error for the caller, who lives on.

mod asked;
pub(crate) mod call;
mod describe;
pub(crate) mod elsewhere;
mod exports;
mod job;
pub(crate) mod keyed;
mod library;
mod plain;
pub(crate) mod provider;
pub(crate) mod toolbox;

use wasmtime::Result;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::store::StoreData;
use bindings::nala::tools::registry::{Event, HostRunning, Request};
use bindings::nala::tools::types::{Abilities, Answer, Catalogue, Entry, Error, Progress, Question, Refusal, Tool};
use bindings::nala::tools::{registry, report, types};
use call::{Next, Running};
use job::{Job, Said};

#[allow(missing_docs, reason = "flags are written without their comments; the interface has them")]
pub(crate) mod bindings {
    wasmtime::component::bindgen!({
        inline: "
            package nala:host-tools;

            world all {
                import nala:tools/report@0.1.0;
                import nala:tools/registry@0.1.0;
            }
        ",
        path: ["../../wit/wasi-io", "../../wit/nala-tools"],
        imports: { default: async | trappable, "nala:tools/registry.[method]running.subscribe": trappable },
        require_store_data_send: true,
        with: {
            "wasi:io": wasmtime_wasi::p2::bindings::io,
            "nala:tools/registry.running": super::call::Running,
        },
    });
}

struct HasTools;

impl HasData for HasTools {
    type Data<'a> = &'a mut StoreData;
}

pub(crate) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    types::add_to_linker::<_, HasTools>(linker, |data| data)?;
    report::add_to_linker::<_, HasTools>(linker, |data| data)?;
    registry::add_to_linker::<_, HasTools>(linker, |data| data)
}

impl types::Host for StoreData {}

impl report::Host for StoreData {
    async fn tell(&mut self, progress: Progress) -> Result<()> {
        if let Some(listener) = &self.listener {
            listener.report(progress);
        }
        Ok(())
    }

    async fn log(&mut self, entry: Entry) -> Result<()> {
        if let Some(listener) = &self.listener {
            listener.log(entry);
        }
        Ok(())
    }

    async fn ask(&mut self, questions: Vec<Question>) -> Result<Result<Vec<String>, Refusal>> {
        match self.listener.clone() {
            Some(listener) => Ok(listener.ask(questions).await),
            None => Ok(Err(Refusal::Unable(Abilities::all()))),
        }
    }
}

impl registry::Host for StoreData {
    async fn list_tools(&mut self) -> Result<Vec<Tool>> {
        Ok(self.tools.list())
    }

    async fn list_library(&mut self) -> Result<Catalogue> {
        Ok(self.tools.catalogue())
    }

    async fn call(&mut self, name: String, arguments: String) -> Result<Result<Answer, Error>> {
        let job = Job::Call { tool: name, arguments };
        Ok(match self.tools.start(job, Abilities::empty(), self) {
            Ok(running) => match running.answer().await {
                Ok(Said::Answer(answer)) => Ok(answer),
                Ok(_) => Err(Error::Failed("this was no call of a tool".into())),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        })
    }

    async fn start(&mut self, name: String, arguments: String) -> Result<Result<Resource<Running>, Error>> {
        self.begin(Request::Call((name, arguments)), Abilities::empty()).await
    }

    async fn begin(&mut self, request: Request, abilities: Abilities) -> Result<Result<Resource<Running>, Error>> {
        match self.tools.start(request.into(), abilities, self) {
            Ok(running) => Ok(Ok(self.table.push(running)?)),
            Err(error) => Ok(Err(error)),
        }
    }
}

/// Lets a guest wait for a call along with other things.
struct Ready(call::Shared);

#[async_trait]
impl Pollable for Ready {
    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

impl HostRunning for StoreData {
    fn subscribe(&mut self, running: Resource<Running>) -> Result<Resource<DynPollable>> {
        let ready = Ready(self.table.get(&running)?.shared());
        let ready = self.table.push(ready)?;
        subscribe(&mut self.table, ready)
    }

    async fn next(&mut self, running: Resource<Running>) -> Result<Result<Option<Event>, Error>> {
        Ok(match self.table.get(&running)?.next().await {
            Next::Progress(progress) => Ok(Some(Event::Progress(progress))),
            Next::Log(entry) => Ok(Some(Event::Log(entry))),
            Next::Ask(questions) => Ok(Some(Event::Ask(questions))),
            Next::Answer(said) => said.map(|said| Some(said.into())),
            Next::Nothing => Ok(None),
        })
    }

    async fn reply(&mut self, running: Resource<Running>, replies: Result<Vec<String>, String>) -> Result<bool> {
        Ok(self.table.get(&running)?.reply(replies))
    }

    async fn drop(&mut self, running: Resource<Running>) -> Result<()> {
        self.table.delete(running)?;
        Ok(())
    }
}
