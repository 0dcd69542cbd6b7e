//! What a pool does beside its callers: loading, unloading, looking at the clock.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant as Began};

use tokio::time::{Instant, sleep_until};

use super::error::LoadFailure;
use super::ledger::{Begin, Index};
use super::{Kept, Shared};
use crate::engine::Engine;

/// Unloads the victims, then loads a model that was claimed. Returns at once.
pub(super) fn load(shared: &Arc<Shared>, index: Index, victims: Vec<(Index, Engine)>) {
    for (victim, engine) in victims {
        unload(shared, victim, engine);
    }
    let shared = Arc::clone(shared);
    let runtime = shared.runtime.clone();
    runtime.clone().spawn(async move {
        if !until_it_may_begin(&shared, index).await {
            finish(&shared, index, Err(LoadFailure::ShutDown));
            return;
        }
        let working = Arc::clone(&shared);
        let work = runtime.spawn_blocking(move || load_here(&working, index));
        if work.await.is_err() {
            finish(&shared, index, Err(LoadFailure::Panicked));
        }
    });
}

/// Waits until the memory that was promised is free.
async fn until_it_may_begin(shared: &Shared, index: Index) -> bool {
    loop {
        let mut changed = std::pin::pin!(shared.changed.notified());
        changed.as_mut().enable();
        let begin = shared.ledger().begin(index);
        match begin {
            Begin::Now => return true,
            Begin::Never => return false,
            Begin::Later => changed.await,
        }
    }
}

/// Loads a model whose load has begun, on this thread.
pub(super) fn load_here(shared: &Arc<Shared>, index: Index) {
    let Some(model) = shared.models.get(index) else { return };
    let begin = Began::now();
    let loaded = (model.load)()
        .map_err(LoadFailure::Load)
        .and_then(|loaded| Ok(Engine::start_counting(&*model.name, loaded, model.config, model.metrics.clone())?));
    if let Ok(engine) = &loaded {
        let _same_as_before = model.limits.set(engine.limits());
        shared.metrics.load_seconds.observe(begin.elapsed().as_secs_f64());
    }
    finish(shared, index, loaded);
}

/// A load has ended, one way or the other.
fn finish(shared: &Arc<Shared>, index: Index, done: Result<Engine, LoadFailure>) {
    let label = shared.label(index);
    match &done {
        Ok(_) => {
            shared.metrics.loads.get_or_create(&label).inc();
            shared.metrics.loaded.get_or_create(&label).set(1);
            tracing::info!(model = label.model, "the model is loaded");
        }
        Err(error) => {
            shared.metrics.load_failures.get_or_create(&label).inc();
            tracing::error!(model = label.model, %error, "the model cannot be loaded");
        }
    }
    let unwanted = shared.ledger().finish(index, done, Instant::now());
    shared.tell();
    if let Some(engine) = unwanted {
        unload(shared, index, engine);
    }
}

/// Ends the engine of a model that was taken out. Returns at once.
pub(super) fn unload(shared: &Arc<Shared>, index: Index, engine: Engine) {
    let shared = Arc::clone(shared);
    shared.runtime.clone().spawn(async move { end(&shared, index, engine).await });
}

/// Ends the engine of a model that was taken out, and waits for it.
pub(super) async fn end(shared: &Arc<Shared>, index: Index, engine: Engine) {
    let label = shared.label(index);
    if engine.has_saved() {
        tracing::warn!(model = label.model, "the model is unloaded; sessions that were saved with it are gone");
    }
    engine.shutdown().await;
    let metrics = engine.metrics().clone();
    // The weights go with the last handle, which may take a while.
    let _dropped = shared.runtime.spawn_blocking(move || drop(engine)).await;
    metrics.rest();
    shared.metrics.loaded.get_or_create(&label).set(0);
    shared.metrics.unloads.get_or_create(&label).inc();
    tracing::info!(model = label.model, "the model is unloaded");
    shared.ledger().unloaded(index);
    shared.tell();
}

/// Unloads models that have been idle for long, until the pool is gone.
pub(super) fn watch_idle(shared: &Arc<Shared>, idle: Duration) {
    let told = Arc::clone(&shared.idle);
    let pool: Weak<Shared> = Arc::downgrade(shared);
    shared.runtime.spawn(async move {
        loop {
            let next = match pool.upgrade() {
                None => return,
                Some(shared) => {
                    let now = Instant::now();
                    let expired = shared.ledger().take_idle(idle, now);
                    for (index, engine) in expired {
                        unload(&shared, index, engine);
                    }
                    shared.ledger().next_idle(idle, now)
                }
            };
            // Whatever comes to be idle meanwhile expires later.
            match next {
                Some(end) => sleep_until(end).await,
                None => told.notified().await,
            }
        }
    });
}
