//! The one thread that writes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::change::{Change, Done};
use crate::config::{Limits, Queue};
use crate::database::Database;
use crate::error::{Error, Fault};
use crate::tables::Tables;
use crate::turns::{Full, Turn, Turns};

/// Who is told what an operation came to.
pub(crate) type Reply = Box<dyn FnOnce(Result<Done, Error>) + Send>;

/// What waits for the thread, and the numbers it keeps.
pub(crate) struct Writes {
    limits: Limits,
    bounds: Queue,
    state: Mutex<State>,
    wake: Condvar,
    commits: AtomicU64,
}

struct State {
    turns: Turns<Job>,
    closed: bool,
}

struct Job {
    change: Change,
    reply: Reply,
}

impl Writes {
    pub(crate) fn new(limits: Limits, bounds: Queue) -> Self {
        let state = Mutex::new(State { turns: Turns::new(bounds), closed: false });
        Self { limits, bounds, state, wake: Condvar::new(), commits: AtomicU64::new(0) }
    }

    /// Lets an operation wait for its turn, for `tenant`. If it is refused, nobody
    /// is told but the caller.
    pub(crate) fn push(&self, tenant: &Arc<str>, change: Change, reply: Reply) -> Result<(), Error> {
        let mut state = self.lock();
        if state.closed {
            return Err(Error::Closed);
        }
        let cost = change.cost();
        state.turns.push(tenant, cost, Job { change, reply }).map_err(|Full { waiting }| Error::Busy { waiting })?;
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Takes nothing more in; what waits is still written.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    /// Groups of writes that were handed to the disk, or found to change nothing.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Acquire)
    }

    /// Writes until [`Writes::close`] is called and nothing waits.
    pub(crate) fn run(&self, database: &Database) {
        while let Some(group) = self.next_group() {
            let outcomes = database.write(|transaction| {
                let mut tables = Tables::open(transaction)?;
                let outcomes: Vec<_> = group
                    .iter()
                    .map(|turn| apply(&turn.item.change, &mut tables, &self.limits))
                    .collect::<Result<_, _>>()?;
                Ok((outcomes, tables.finish()?))
            });
            self.commits.fetch_add(1, Ordering::AcqRel);
            match outcomes {
                Ok(outcomes) => self.answer(group, outcomes),
                Err(error) => group.into_iter().for_each(|turn| (turn.item.reply)(Err(error.clone()))),
            }
        }
    }

    fn answer(&self, group: Vec<Turn<Job>>, outcomes: Vec<Result<Done, Error>>) {
        // In reverse, so that what is put back keeps its order.
        for (turn, outcome) in group.into_iter().zip(outcomes).rev() {
            if outcome == Ok(Done::Unfinished) {
                self.lock().turns.put_back(turn);
            } else {
                (turn.item.reply)(outcome);
            }
        }
    }

    /// What becomes the next commit; waits for it. None: it is over.
    fn next_group(&self) -> Option<Vec<Turn<Job>>> {
        let mut state = self.lock();
        while state.turns.is_empty() {
            if state.closed {
                return None;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut group = Vec::new();
        let mut bytes = 0;
        while group.len() < self.bounds.group_writes && bytes < self.bounds.group_bytes {
            let Some(turn) = state.turns.pop() else { break };
            bytes += turn.cost;
            // What a removal leaves must be gone before its tenant writes again.
            let last = matches!(turn.item.change, Change::Remove(_));
            group.push(turn);
            if last {
                break;
            }
        }
        Some(group)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under the lock leaves the queue half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does one operation; what is refused does not end the others.
fn apply(change: &Change, tables: &mut Tables<'_>, limits: &Limits) -> Result<Result<Done, Error>, Fault> {
    match change.apply(tables, limits) {
        Ok(done) => Ok(Ok(done)),
        Err(Fault::Refused(error)) => Ok(Err(error)),
        Err(fault) => Err(fault),
    }
}
