//! Pools over fake engines, with the clock standing still.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;

use super::*;
use crate::fake::Fake;
use crate::{GenerateOptions, SessionOptions};

/// Keeps tokio's paused clock from running ahead while an engine thread works:
/// it stands still as long as somebody blocks.
struct Still(Option<mpsc::Sender<()>>);

impl Still {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || receiver.recv());
        Self(Some(sender))
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        self.0.take();
    }
}

/// What the models of a test do, and what was seen of them.
#[derive(Default)]
struct Seen {
    loads: AtomicUsize,
    /// Bytes that loaders and backends hold now.
    held: AtomicU64,
    most: AtomicU64,
    fail: AtomicBool,
    panic: AtomicBool,
    /// Holds loads up while it is taken.
    gate: Mutex<()>,
}

struct Memory(Arc<Seen>, u64);

impl Memory {
    fn take(seen: &Arc<Seen>, bytes: u64) -> Self {
        let held = seen.held.fetch_add(bytes, Ordering::SeqCst) + bytes;
        seen.most.fetch_max(held, Ordering::SeqCst);
        Self(Arc::clone(seen), bytes)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.0.held.fetch_sub(self.1, Ordering::SeqCst);
    }
}

/// A model that says its name after any prompt.
fn spec(seen: &Arc<Seen>, name: &str, bytes: u64, residence: Residence) -> ModelSpec {
    let (seen, text) = (Arc::clone(seen), name.to_owned());
    let load: Loader = Box::new(move || {
        seen.loads.fetch_add(1, Ordering::SeqCst);
        let _open = seen.gate.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!seen.panic.load(Ordering::SeqCst), "asked for");
        if seen.fail.load(Ordering::SeqCst) {
            return Err("no such file".into());
        }
        let memory = Memory::take(&seen, bytes);
        let before_decode: crate::fake::BeforeDecode = Arc::new(move |_| {
            let _held_by_the_backend = &memory;
            Ok(())
        });
        Ok(Fake { before_decode, ..Fake::saying(&text) }.load())
    });
    ModelSpec { name: name.to_owned(), bytes, residence, engine: EngineConfig::default(), load }
}

fn pool(config: PoolConfig, models: Vec<ModelSpec>) -> ModelPool {
    ModelPool::new(config, models, Handle::current()).unwrap()
}

fn three(seen: &Arc<Seen>) -> Vec<ModelSpec> {
    ["alpha", "beta", "gamma"].map(|name| spec(seen, name, 4, Residence::OnDemand)).into()
}

fn count(
    metric: &prometheus_client::metrics::family::Family<ModelLabel, prometheus_client::metrics::counter::Counter>,
    model: &str,
) -> u64 {
    metric.get_or_create(&ModelLabel { model: model.to_owned() }).get()
}

async fn says(lease: &Lease) -> String {
    let mut session = lease.open_session(SessionOptions::default()).unwrap();
    session.prefill(vec![33; 20]).await.unwrap();
    let mut run = session.generate(GenerateOptions::greedy(20)).unwrap();
    let mut text = String::new();
    while let Some(chunk) = run.next().await.unwrap() {
        text += &chunk.text;
    }
    text
}

/// Looks until something holds, on a clock of its own.
async fn until(holds: impl Fn() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(5))).await.unwrap();
    }
    panic!("it never holds");
}

#[tokio::test(start_paused = true)]
async fn a_model_is_loaded_when_it_is_first_used_and_once_for_all() {
    let _still = Still::new();
    let seen = Arc::default();
    let pool = pool(PoolConfig::default(), three(&seen));
    assert_eq!(seen.loads.load(Ordering::SeqCst), 0);
    let all: Vec<_> = (0..20)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { says(&pool.acquire("beta").await.unwrap()).await })
        })
        .collect();
    for one in all {
        assert_eq!(one.await.unwrap(), "beta");
    }
    assert_eq!(seen.loads.load(Ordering::SeqCst), 1);
    assert_eq!(pool.model("beta").unwrap().limits().unwrap().kv_cells, 4096);
    assert!(pool.model("alpha").unwrap().limits().is_none());
    let unknown = pool.acquire("delta").await.unwrap_err().to_string();
    assert_eq!(unknown, "there is no model delta; there are: alpha, beta, gamma");
    pool.shutdown().await;
    assert_eq!(seen.held.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn the_least_recently_used_makes_room_and_comes_back() {
    let _still = Still::new();
    let seen: Arc<Seen> = Arc::default();
    let pool = pool(PoolConfig { budget: 8, ..PoolConfig::default() }, three(&seen));
    for name in ["alpha", "beta", "gamma", "beta", "alpha"] {
        let lease = pool.acquire(name).await.unwrap();
        assert_eq!(says(&lease).await, name);
        drop(lease);
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(seen.most.load(Ordering::SeqCst), 8, "two at a time");
    let (loads, unloads) = (&pool.metrics().loads, &pool.metrics().unloads);
    assert_eq!([count(loads, "alpha"), count(loads, "beta"), count(loads, "gamma")], [2, 1, 1]);
    assert_eq!([count(unloads, "alpha"), count(unloads, "beta"), count(unloads, "gamma")], [1, 0, 1]);
    // An engine's counters go on over its loads, and what it holds is gone with it.
    let alpha = pool.model("alpha").unwrap().metrics();
    assert_eq!(alpha.generated_tokens.get(), 12, "five letters and the end, twice");
    assert_eq!(pool.model("gamma").unwrap().metrics().kv_cells.get(), 0);
    assert_eq!(pool.metrics().bytes.get(), 8);
    pool.shutdown().await;
    assert_eq!((pool.metrics().bytes.get(), seen.held.load(Ordering::SeqCst)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn room_in_use_is_waited_for_and_then_said_to_be_busy() {
    let still = Still::new();
    let seen = Arc::default();
    let pool = pool(PoolConfig { budget: 4, ..PoolConfig::default() }, three(&seen));
    let alpha = pool.acquire("alpha").await.unwrap();
    let waits = tokio::spawn({
        let pool = pool.clone();
        async move { pool.acquire("beta").await.map(|lease| lease.name().to_owned()) }
    });
    until(|| pool.metrics().waiting.get() == 1).await;
    tokio::time::advance(Duration::from_secs(61)).await;
    let error = waits.await.unwrap().unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, AcquireError::Busy { .. }), "{said}");
    assert!(said.contains("beta") && said.contains("alpha (4 bytes, 1 in use)"), "{said}");
    assert_eq!((pool.metrics().waiting.get(), pool.metrics().busy.get()), (0, 1));
    // Its clones count too, and the model in use was not disturbed.
    let clone = alpha.clone();
    drop(alpha);
    let mut second = Box::pin(pool.acquire("beta"));
    assert!(futures_poll(&mut second).is_none());
    assert_eq!(says(&clone).await, "alpha");
    drop(clone);
    assert_eq!(says(&second.await.unwrap()).await, "beta");
    pool.shutdown().await;
    drop(still);
}

/// Polls once.
fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(future).poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test(start_paused = true)]
async fn callers_that_go_leave_nothing_behind() {
    let _still = Still::new();
    let seen: Arc<Seen> = Arc::default();
    let pool = pool(PoolConfig { budget: 4, ..PoolConfig::default() }, three(&seen));
    {
        let _shut = seen.gate.lock().unwrap();
        let mut gone = Box::pin(pool.acquire("alpha"));
        assert!(futures_poll(&mut gone).is_none());
        let mut next = Box::pin(pool.acquire("beta"));
        assert!(futures_poll(&mut next).is_none());
        drop((gone, next));
        assert_eq!(pool.metrics().waiting.get(), 0);
    }
    // The load that was begun goes on, and its model is as idle as any other.
    until(|| count(&pool.metrics().loads, "alpha") == 1).await;
    assert_eq!(says(&pool.acquire("beta").await.unwrap()).await, "beta");
    assert_eq!(count(&pool.metrics().unloads, "alpha"), 1);
    pool.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_to_all_and_poisons_nothing() {
    let _still = Still::new();
    let seen: Arc<Seen> = Arc::default();
    let pool = pool(PoolConfig::default(), three(&seen));
    seen.fail.store(true, Ordering::SeqCst);
    let ask = || {
        let pool = pool.clone();
        tokio::spawn(async move { pool.acquire("alpha").await.map(drop) })
    };
    let all: Vec<_> = (0..5).map(|_| ask()).collect();
    for one in all {
        let said = one.await.unwrap().unwrap_err().to_string();
        assert_eq!(said, "the model alpha cannot be loaded: no such file");
    }
    assert!(ask().await.unwrap().is_err(), "told again, for a while");
    assert_eq!(seen.loads.load(Ordering::SeqCst), 1);
    tokio::time::advance(Duration::from_secs(5)).await;
    seen.fail.store(false, Ordering::SeqCst);
    seen.panic.store(true, Ordering::SeqCst);
    let said = ask().await.unwrap().unwrap_err().to_string();
    assert!(said.contains("panic"), "{said}");
    tokio::time::advance(Duration::from_secs(5)).await;
    seen.panic.store(false, Ordering::SeqCst);
    assert_eq!(says(&pool.acquire("alpha").await.unwrap()).await, "alpha");
    assert_eq!(count(&pool.metrics().load_failures, "alpha"), 2);
    pool.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_nobody_uses_for_a_while_is_unloaded() {
    let _still = Still::new();
    let seen: Arc<Seen> = Arc::default();
    let mut models = three(&seen);
    models.push(spec(&seen, "home", 4, Residence::Resident));
    let pool = pool(PoolConfig { idle: Some(Duration::from_secs(100)), ..PoolConfig::default() }, models);
    let home = pool.model("home").unwrap().preload().unwrap();
    drop(home);
    let alpha = pool.acquire("alpha").await.unwrap();
    drop(pool.acquire("beta").await.unwrap());
    let loaded = |name| pool.model(name).unwrap().loaded().is_some();
    // `loaded` takes a lease, so looking is using.
    let bytes = || pool.metrics().bytes.get();
    tokio::time::advance(Duration::from_secs(99)).await;
    tokio::task::yield_now().await;
    assert_eq!(bytes(), 12);
    tokio::time::advance(Duration::from_secs(2)).await;
    until(|| bytes() == 8).await;
    drop(alpha);
    tokio::time::advance(Duration::from_secs(99)).await;
    assert!(loaded("alpha"));
    tokio::time::advance(Duration::from_secs(99)).await;
    tokio::task::yield_now().await;
    assert_eq!(bytes(), 8, "used in between");
    tokio::time::advance(Duration::from_secs(2)).await;
    until(|| bytes() == 4).await;
    assert!(loaded("home") && !loaded("alpha") && !loaded("beta"));
    pool.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_is_told_and_waited_for() {
    let _still = Still::new();
    let seen: Arc<Seen> = Arc::default();
    let pool = pool(PoolConfig { budget: 4, ..PoolConfig::default() }, three(&seen));
    let lease = pool.acquire("alpha").await.unwrap();
    let mut waits = Box::pin(pool.acquire("beta"));
    assert!(futures_poll(&mut waits).is_none());
    pool.shutdown().await;
    assert!(matches!(waits.await, Err(AcquireError::ShutDown)));
    assert!(!lease.is_alive());
    assert_eq!(pool.lost(), None, "it was asked to end");
    assert!(matches!(pool.acquire("alpha").await, Err(AcquireError::ShutDown)));
    assert_eq!(seen.held.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_engine_that_ends_unasked_is_named() {
    let seen = Arc::default();
    let pool = pool(PoolConfig::default(), three(&seen));
    let lease = pool.acquire("gamma").await.unwrap();
    assert_eq!(pool.lost(), None);
    lease.shutdown().await;
    assert_eq!(pool.lost().as_deref(), Some("gamma"));
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_numbers() {
    let seen = Arc::default();
    let refused = |budget, models: [(&str, u64, Residence); 2]| {
        let models = models.map(|(name, bytes, residence)| spec(&seen, name, bytes, residence)).into();
        let config = PoolConfig { budget, ..PoolConfig::default() };
        ModelPool::new(config, models, Handle::current()).err().unwrap().to_string()
    };
    use Residence::{OnDemand, Resident};
    let twice = refused(9, [("a", 1, OnDemand), ("a", 1, OnDemand)]);
    assert!(twice.contains("two models are named a"), "{twice}");
    let large = refused(9, [("a", 4, Resident), ("b", 6, OnDemand)]);
    assert!(large.contains("b needs 6 bytes but 5 bytes"), "{large}");
    let residents = refused(9, [("a", 4, Resident), ("b", 6, Resident)]);
    assert!(residents.contains("need 10 bytes") && residents.contains("is 9 bytes"), "{residents}");
}

/// Callers with a seed each: they lease, ask, hold on, leave in the middle; loads
/// fail now and then. Every answer is the right model's, and the memory that
/// loaders and backends hold never exceeds the budget.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_callers_get_the_right_answers_within_the_budget() {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    const NAMES: [(&str, u64); 5] = [("alpha", 3), ("beta", 5), ("gamma", 2), ("delta", 7), ("omega", 4)];
    for seed in 0..4 {
        let seen: Arc<Seen> = Arc::default();
        let models = NAMES.map(|(name, bytes)| spec(&seen, name, bytes, Residence::OnDemand)).into();
        let config = PoolConfig {
            budget: 10,
            idle: Some(Duration::from_millis(3)),
            retry_after: Duration::ZERO,
            ..PoolConfig::default()
        };
        let pool = pool(config, models);
        let callers: Vec<_> = (0..12_u64)
            .map(|caller| {
                let (pool, seen) = (pool.clone(), Arc::clone(&seen));
                let mut random = ChaCha8Rng::seed_from_u64(seed * 100 + caller);
                tokio::spawn(async move {
                    let mut answered = 0;
                    for _ in 0..40 {
                        let (name, _) = NAMES[random.next_u32() as usize % NAMES.len()];
                        seen.fail.store(random.next_u32().is_multiple_of(20), Ordering::SeqCst);
                        let patience = Duration::from_micros(u64::from(random.next_u32() % 3000));
                        let acquire = pool.acquire(name);
                        let lease = match random.next_u32() % 4 {
                            0 => match tokio::time::timeout(patience, acquire).await {
                                Ok(lease) => lease,
                                Err(_gone) => continue,
                            },
                            _ => acquire.await,
                        };
                        match lease {
                            Ok(lease) => {
                                assert_eq!(says(&lease).await, name);
                                answered += 1;
                            }
                            Err(AcquireError::Failed { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    answered
                })
            })
            .collect();
        let mut answered = 0;
        for caller in callers {
            answered += caller.await.unwrap();
        }
        assert!(answered > 240, "seed {seed}: {answered} of 480 were answered");
        let most = seen.most.load(Ordering::SeqCst);
        assert!(most <= 10, "seed {seed}: {most} bytes were held at once");
        pool.shutdown().await;
        assert_eq!(seen.held.load(Ordering::SeqCst), 0, "seed {seed}");
        assert_eq!((pool.metrics().waiting.get(), pool.metrics().bytes.get()), (0, 0), "seed {seed}");
    }
}

#[tokio::test]
async fn a_model_says_whether_it_can_be_used() {
    let seen = Arc::default();
    let pool = pool(PoolConfig { budget: 4, ..PoolConfig::default() }, three(&seen));
    let (alpha, beta) = (pool.model("alpha").unwrap(), pool.model("beta").unwrap());
    assert_eq!((alpha.state(), beta.state()), (ModelState::Unloaded, ModelState::Unloaded));
    let (go, held) = mpsc::channel::<()>();
    let (gate, taken) = (Arc::clone(&seen), mpsc::channel::<()>());
    let holds = std::thread::spawn(move || {
        let _gate = gate.gate.lock();
        taken.0.send(()).unwrap();
        held.recv().unwrap();
    });
    taken.1.recv().unwrap();
    let waits = tokio::spawn({
        let alpha = alpha.clone();
        async move { alpha.acquire().await.unwrap() }
    });
    until(|| alpha.state() == ModelState::Loading).await;
    assert_eq!(beta.state(), ModelState::Unloaded);
    go.send(()).unwrap();
    holds.join().unwrap();
    let lease = waits.await.unwrap();
    assert_eq!(alpha.state(), ModelState::Loaded);
    drop(lease);
    // It has to go for the other.
    let lease = beta.acquire().await.unwrap();
    assert_eq!((alpha.state(), beta.state()), (ModelState::Unloaded, ModelState::Loaded));
    drop(lease);
    pool.shutdown().await;
}
