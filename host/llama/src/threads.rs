//! The threads that compute.
//!
//! Without a pool of its own a context starts and ends its threads with every
//! batch (unless ggml is built with OpenMP). These are kept.

use std::ptr::NonNull;

use llama_cpp_sys_2 as sys;

use crate::context::Context;

/// Threadpools attached to a context: one for single tokens, one for larger
/// batches where that one has another size.
pub(crate) struct Threads {
    single: NonNull<sys::ggml_threadpool>,
    batch: Option<NonNull<sys::ggml_threadpool>>,
}

impl Threads {
    /// Gives a context its own threads. None where the system refuses them or
    /// one thread is all there is; the context then works without.
    pub(crate) fn attach(context: &Context, single: usize, batch: usize) -> Option<Self> {
        if cfg!(feature = "openmp") || single.max(batch) < 2 {
            return None;
        }
        let mut this = Self { single: pool(single)?, batch: None };
        if single != batch {
            this.batch = Some(pool(batch)?);
        }
        let batch = this.batch.unwrap_or(this.single);
        // SAFETY: the context and the pools are alive; the context drops the
        // pools after itself.
        unsafe {
            sys::llama_attach_threadpool(context.raw().as_ptr(), this.single.as_ptr(), batch.as_ptr());
        }
        Some(this)
    }
}

fn pool(threads: usize) -> Option<NonNull<sys::ggml_threadpool>> {
    let threads = i32::try_from(threads).ok()?;
    // SAFETY: plain numbers in, a plain structure out.
    let mut params = unsafe { sys::ggml_threadpool_params_default(threads) };
    // SAFETY: the parameters are read during the call only.
    NonNull::new(unsafe { sys::ggml_threadpool_new(&raw mut params) })
}

impl Drop for Threads {
    fn drop(&mut self) {
        // SAFETY: made by `pool`, freed once, after the context that used them.
        unsafe {
            sys::ggml_threadpool_free(self.single.as_ptr());
            if let Some(batch) = self.batch {
                sys::ggml_threadpool_free(batch.as_ptr());
            }
        }
    }
}
