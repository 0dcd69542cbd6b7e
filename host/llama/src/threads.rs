//! The threads that compute.
//!
//! Without a pool of its own a context starts and ends its threads with every
//! batch (unless ggml is built with OpenMP). These are kept.

use std::ptr::NonNull;

use llama_cpp_sys_2 as sys;
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::context::Context;
use crate::options::{LoadOptions, Pinning};

/// Threadpools attached to a context: one for single tokens, one for larger
/// batches where that one has another size.
pub(crate) struct Threads {
    single: NonNull<sys::ggml_threadpool>,
    batch: Option<NonNull<sys::ggml_threadpool>>,
}

/// The CPUs that the threads of a model may use.
///
/// To be asked before the first [`Threads`] are made: the thread that attaches them is
/// one of them, and keeps to the CPU it is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cpus {
    /// None: pinning is off, or the system does not tell.
    all: Option<CpuSet>,
}

impl Cpus {
    pub(crate) fn of_this_thread(options: &LoadOptions) -> Self {
        let all = match options.pinning {
            Pinning::Auto => sched_getaffinity(None).ok(),
            Pinning::Off => None,
        };
        Self { all }
    }

    /// Says which CPUs a pool may use: one for each thread where that comes out even,
    /// and else any.
    fn mark(&self, params: &mut sys::ggml_threadpool_params) {
        let Some(all) = &self.all else { return };
        // Named for all pools: the threads of those made later would inherit the one CPU
        // of the thread that makes them.
        for (cpu, mask) in params.cpumask.iter_mut().enumerate() {
            *mask = cpu < CpuSet::MAX_CPU && all.is_set(cpu);
        }
        params.strict_cpu = u32::try_from(params.n_threads) == Ok(all.count());
    }
}

impl Threads {
    /// Gives a context its own threads. None where the system refuses them or
    /// one thread is all there is; the context then works without.
    pub(crate) fn attach(context: &Context, (single, batch): (usize, usize), cpus: &Cpus) -> Option<Self> {
        if cfg!(feature = "openmp") || single.max(batch) < 2 {
            return None;
        }
        // The calling thread is one of both, and keeps to what the latter says: most steps
        // are those of single tokens.
        let of_batches = if single == batch { None } else { Some(pool(batch, cpus)?) };
        let this = match pool(single, cpus) {
            Some(single) => Self { single, batch: of_batches },
            None => {
                if let Some(batch) = of_batches {
                    free(batch);
                }
                return None;
            }
        };
        let batch = this.batch.unwrap_or(this.single);
        // SAFETY: the context and the pools are alive; the context drops the
        // pools after itself.
        unsafe {
            sys::llama_attach_threadpool(context.raw().as_ptr(), this.single.as_ptr(), batch.as_ptr());
        }
        Some(this)
    }
}

fn pool(threads: usize, cpus: &Cpus) -> Option<NonNull<sys::ggml_threadpool>> {
    let threads = i32::try_from(threads).ok()?;
    // SAFETY: plain numbers in, a plain structure out.
    let mut params = unsafe { sys::ggml_threadpool_params_default(threads) };
    cpus.mark(&mut params);
    // SAFETY: the parameters are read during the call only.
    NonNull::new(unsafe { sys::ggml_threadpool_new(&raw mut params) })
}

impl Drop for Threads {
    fn drop(&mut self) {
        free(self.single);
        if let Some(batch) = self.batch {
            free(batch);
        }
    }
}

/// Ends a pool that nobody uses any more.
fn free(pool: NonNull<sys::ggml_threadpool>) {
    // SAFETY: made by `pool`, and freed once: by whoever made it, or with the `Threads`
    // that own it, after the context that used them.
    unsafe { sys::ggml_threadpool_free(pool.as_ptr()) }
}
