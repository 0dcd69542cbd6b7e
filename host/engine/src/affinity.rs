//! Which CPUs a thread may run on, and before whom.
//!
//! A backend may keep the engine thread on one CPU, and threads inherit that from the one
//! that starts them.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that a thread may run on, where the system tells.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Affinity(Option<CpuSet>);

impl Affinity {
    /// Of the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        Self(sched_getaffinity(None).ok())
    }

    /// Lets the calling thread run on these. Where the system refuses, it stays where it
    /// is, and is slower.
    pub(crate) fn apply(&self) {
        if let Some(Err(error)) = self.0.as_ref().map(|cpus| sched_setaffinity(None, cpus)) {
            tracing::debug!(%error, "a thread keeps to the CPUs of the one that started it");
        }
    }
}

/// How far threads that follow grammars step back, as by nice(1): what they find out is
/// for one run, and the engine thread's steps are for all.
pub(crate) const FOLLOWING: i32 = 5;
/// And those that compile: nothing waits for them but who asked for it, and several may
/// go on at once.
pub(crate) const COMPILING: i32 = 10;

/// Has the calling thread step back behind the engine's.
pub(crate) fn step_back(by: i32) {
    if let Err(error) = nala_machine::step_back(by) {
        tracing::debug!(%error, "a thread for grammars does not step back behind others");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_back_what_the_one_that_started_it_has_lost() {
        let all = Affinity::of_this_thread();
        let count = |affinity: Affinity| affinity.0.unwrap().count();
        let (pinned, back) = std::thread::spawn(move || {
            let cpu = (0..CpuSet::MAX_CPU).find(|cpu| all.0.unwrap().is_set(*cpu)).unwrap();
            let mut one = CpuSet::new();
            one.set(cpu);
            Affinity(Some(one)).apply();
            std::thread::spawn(move || {
                let inherited = Affinity::of_this_thread();
                all.apply();
                (count(inherited), count(Affinity::of_this_thread()))
            })
            .join()
            .unwrap()
        })
        .join()
        .unwrap();
        assert_eq!((pinned, back), (1, count(all)));
    }
}
