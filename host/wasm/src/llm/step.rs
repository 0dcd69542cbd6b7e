//! Steps over many sessions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nala_engine::{self as engine, Lease, Submitted};
use tokio::sync::Mutex;
use wasmtime::Result;
use wasmtime::component::Resource;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use super::bindings::nala::llm::session::{HostPending, Reading, Step};
use super::bindings::nala::llm::types::Error;
use super::handle::{Place, SessionHandle};
use super::{LlmView, convert};

/// A step that a guest has submitted.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct PendingHandle {
    submitted: Shared,
    // Behind the step, which lives under it.
    _lease: Lease,
    /// Empty once the readings were taken.
    parts: Vec<Part>,
}

/// None once it was taken. Shared with those who wait for it, which do not keep it
/// going.
type Shared = Arc<Mutex<Option<Submitted>>>;

/// One session's part of a step.
struct Part {
    place: Place,
    /// Tokens that are appended.
    input: u64,
}

/// Lets a guest wait for a step along with other things.
struct Ready(Shared);

#[async_trait]
impl Pollable for Ready {
    async fn ready(&mut self) {
        if let Some(submitted) = &mut *self.0.lock().await {
            submitted.ready().await;
        }
    }
}

/// The guest's steps by their sessions, with their places in its list.
fn by_session(steps: Vec<Step>) -> Result<BTreeMap<u32, (usize, engine::Step)>, Error> {
    let mut all = BTreeMap::new();
    for (index, Step { on, input, readout }) in steps.into_iter().enumerate() {
        let step = engine::Step { input, readouts: readout.into_iter().map(convert::readout).collect() };
        if all.insert(on.rep(), (index, step)).is_some() {
            let text = format!(
                "the session of step {index} stands in the list before; submit its next step when this one is taken"
            );
            return Err(Error::InvalidArgument(text));
        }
    }
    Ok(all)
}

/// A session with a part in the step to be.
struct Entry<'a> {
    session: u32,
    handle: &'a mut SessionHandle,
    input: u64,
}

/// Gives the engine its step, with cells set aside for all inputs. On an error all
/// is as before.
fn submit(entries: &mut [Entry<'_>], steps: Vec<engine::Step>, max: u64) -> Result<Submitted, Error> {
    let aside = entries.iter_mut().try_for_each(|entry| {
        let wanted = entry.handle.length().saturating_add(entry.input);
        entry.handle.cells.set(wanted, max)
    });
    let submitted = aside.and_then(|()| {
        let sessions = entries.iter_mut().map(|entry| &mut entry.handle.session);
        engine::submit(sessions.zip(steps).collect()).map_err(convert::error)
    });
    if submitted.is_err() {
        entries.iter_mut().for_each(|entry| entry.handle.cells.keep(entry.handle.length()));
    }
    submitted
}

impl LlmView<'_> {
    pub(super) async fn submit_steps(&mut self, steps: Vec<Step>) -> Result<Result<Resource<PendingHandle>, Error>> {
        let steps = match by_session(steps) {
            Ok(steps) => steps,
            Err(error) => return Ok(Err(error)),
        };
        if let Err(error) = self.state.may_read() {
            return Ok(Err(error));
        }
        let sessions: Vec<u32> = steps.keys().copied().collect();
        for &session in &sessions {
            let handle: &mut SessionHandle = self.table.get_mut(&Resource::new_borrow(session))?;
            if let Err(error) = handle.may_step().await {
                return Ok(Err(error));
            }
        }
        let mut entries = Vec::with_capacity(sessions.len());
        for (session, (handle, (index, step))) in sessions.into_iter().zip(self.table.iter_entries(steps)) {
            let Some(handle) = handle?.downcast_mut::<SessionHandle>() else {
                return Err(wasmtime::format_err!("a step's session is something else"));
            };
            let input = step.input.len() as u64;
            entries.push((index, step, Entry { session, handle, input }));
        }
        // As the guest has them.
        entries.sort_by_key(|(index, ..)| *index);
        let (steps, mut entries): (Vec<_>, Vec<_>) = entries.into_iter().map(|(_, step, entry)| (step, entry)).unzip();
        let submitted = match submit(&mut entries, steps, self.state.max_kv_cells) {
            Ok(submitted) => submitted,
            Err(error) => return Ok(Err(error)),
        };
        // All are of one model.
        let Some(lease) = entries.first().map(|entry| entry.handle.lease.clone()) else {
            return Err(wasmtime::format_err!("a step without sessions was begun"));
        };
        let mut parts = Vec::with_capacity(entries.len());
        for Entry { session, handle, input } in entries {
            self.state.works += 1;
            let place = Place { session, number: self.state.works };
            handle.steps(place.number);
            self.state.usage.prompt_tokens.fetch_add(input, Ordering::Relaxed);
            // A token more is computed where readings are wanted of what is there.
            self.state.account.read(input.max(1), 0);
            parts.push(Part { place, input });
        }
        let submitted = Arc::new(Mutex::new(Some(submitted)));
        Ok(Ok(self.table.push(PendingHandle { submitted, _lease: lease, parts })?))
    }
}

impl HostPending for LlmView<'_> {
    fn subscribe(&mut self, pending: Resource<PendingHandle>) -> Result<Resource<DynPollable>> {
        let ready = Ready(Arc::clone(&self.table.get(&pending)?.submitted));
        let ready = self.table.push(ready)?;
        subscribe(self.table, ready)
    }

    async fn take(
        &mut self,
        pending: Resource<PendingHandle>,
    ) -> Result<Result<Vec<Result<Vec<Reading>, Error>>, Error>> {
        let handle = self.table.get_mut(&pending)?;
        let Some(submitted) = handle.submitted.lock().await.take() else {
            let text = "the readings of this step were taken already";
            return Ok(Err(Error::InvalidArgument(text.into())));
        };
        let results = submitted.take().await;
        for Part { place, .. } in std::mem::take(&mut handle.parts) {
            if let Some(session) = self.session_of(place) {
                session.end(place.number);
            }
        }
        Ok(Ok(results.into_iter().map(convert::readings).collect()))
    }

    fn drop(&mut self, pending: Resource<PendingHandle>) -> Result<()> {
        let PendingHandle { submitted, parts, _lease } = self.table.delete(pending)?;
        // Cancels it before its sessions are looked at, also where somebody could
        // still wait for it.
        drop(submitted.try_lock().ok().and_then(|mut submitted| submitted.take()));
        for Part { place, input } in parts {
            if let Some(session) = self.session_of(place) {
                session.abandon(place.number, input);
            }
        }
        Ok(())
    }
}
