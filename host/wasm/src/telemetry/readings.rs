//! Readings that all who ask share, so that nobody sees more by asking more often, and
//! asking costs the machine no more than a reading each tenth of a second.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nala_engine::{EngineMetrics, ModelState, PooledModel};
use nala_machine::{Energy, Load, Machine};
use tokio::sync::watch;
use tokio::time::timeout;

use super::Fineness;

/// How old a reading is at the most that is shown exactly, and how long it is until the
/// next.
const EXACT: Duration = Duration::from_millis(100);

/// The same for readings that are rounded.
const COARSE: Duration = Duration::from_secs(1);

/// Over how long it is seen how busy the CPUs are, if nobody has asked before.
const WINDOW: Duration = Duration::from_millis(200);

/// Over how long at the most, if somebody has.
const LONGEST_WINDOW: Duration = Duration::from_secs(5);

/// How long a reading is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

impl Fineness {
    fn longest_age(self) -> Duration {
        match self {
            Self::Exact => EXACT,
            Self::Coarse => COARSE,
        }
    }
}

/// What the machine did at a moment.
#[derive(Debug)]
pub(crate) struct Moment {
    /// What it has, which does not change.
    pub(super) machine: Arc<Machine>,
    /// In milliseconds since 1970.
    pub(super) at_ms: u64,
    pub(super) load: Load,
    pub(super) energy: Energy,
    /// How busy the CPUs were before, from 0 to 1, and over how long.
    pub(super) busy: Option<(f64, Duration)>,
    at: Instant,
}

impl Moment {
    fn read(machine: &Arc<Machine>) -> Self {
        let (at, at_ms) = (Instant::now(), now_ms());
        Self { machine: Arc::clone(machine), at_ms, load: Load::now(), energy: Energy::now(), busy: None, at }
    }

    /// The same, with how busy the CPUs were since an earlier one.
    fn since(self, earlier: &Self) -> Self {
        let over = self.at.saturating_duration_since(earlier.at);
        let used = self.load.cpu.zip(earlier.load.cpu).and_then(|(now, before)| now.used_since(&before));
        Self { busy: used.map(|used| (used, over)), ..self }
    }
}

/// What a model did at a moment.
#[derive(Debug, Clone)]
pub(crate) struct ModelMoment {
    pub(super) name: Arc<str>,
    pub(super) state: ModelState,
    /// In milliseconds since 1970.
    pub(super) at_ms: u64,
    pub(super) sessions: u64,
    pub(super) running: u64,
    pub(super) waiting: u64,
    pub(super) kv_cells_used: u64,
    pub(super) kv_cells_cached: u64,
    pub(super) kv_cells: u64,
    pub(super) prompt_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) generated_tokens: u64,
    pub(super) steps: u64,
    pub(super) step_us: u64,
    at: Instant,
}

impl ModelMoment {
    fn read(model: &PooledModel) -> Self {
        let EngineMetrics {
            decode_steps,
            decode_seconds,
            prompt_tokens,
            cached_tokens,
            generated_tokens,
            sessions,
            running,
            queued,
            kv_cells_used,
            kv_cells_cached,
            kv_cells,
            ..
        } = model.metrics();
        let now = |gauge: i64| u64::try_from(gauge).unwrap_or(0);
        Self {
            name: model.name().into(),
            state: model.state(),
            at_ms: now_ms(),
            sessions: now(sessions.get()),
            running: now(running.get()),
            waiting: now(queued.get()),
            kv_cells_used: now(kv_cells_used.get()),
            kv_cells_cached: now(kv_cells_cached.get()),
            kv_cells: now(kv_cells.get()),
            prompt_tokens: prompt_tokens.get(),
            cached_tokens: cached_tokens.get(),
            generated_tokens: generated_tokens.get(),
            steps: decode_steps.get(),
            step_us: (decode_seconds.get() * 1e6) as u64,
            at: Instant::now(),
        }
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// What all components of a runtime share.
#[derive(Default)]
pub(crate) struct Readings {
    /// Begins with the first who asks.
    sampler: OnceLock<Option<Sampler>>,
    /// What those are shown whose figures are rounded.
    coarse: Mutex<Option<Arc<Moment>>>,
    exact_models: Models,
    coarse_models: Models,
}

/// The last reading of each model.
type Models = Mutex<BTreeMap<Arc<str>, ModelMoment>>;

/// A thread that reads when somebody wants it to. It is none of a runtime's, since files of
/// the system may take their time, and no guest is to wait for the thread of another. It
/// ends with this.
struct Sampler {
    wanted: SyncSender<()>,
    last: watch::Receiver<Option<Arc<Moment>>>,
}

impl Sampler {
    fn start() -> Option<Self> {
        // One request is as good as many.
        let (wanted, asked) = sync_channel(1);
        let (publish, last) = watch::channel(None);
        let thread = thread::Builder::new().name("nala telemetry".to_owned());
        match thread.spawn(move || sample(&asked, &publish)) {
            Ok(_ends_by_itself) => Some(Self { wanted, last }),
            Err(error) => {
                tracing::warn!(%error, "there is no thread to read what the machine does");
                None
            }
        }
    }
}

fn sample(asked: &Receiver<()>, publish: &watch::Sender<Option<Arc<Moment>>>) {
    let machine = Arc::new(Machine::probe());
    let mut last: Option<Arc<Moment>> = None;
    while asked.recv().is_ok() {
        let before = last.take().filter(|last| last.at.elapsed() < LONGEST_WINDOW).unwrap_or_else(|| {
            let first = Moment::read(&machine);
            thread::sleep(WINDOW);
            Arc::new(first)
        });
        let moment = Arc::new(Moment::read(&machine).since(&before));
        if publish.send(Some(Arc::clone(&moment))).is_err() {
            return;
        }
        last = Some(moment);
        thread::sleep(EXACT);
    }
}

impl Readings {
    /// A moment that is new enough, once there is one.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn now(&self, fineness: Fineness) -> Result<Arc<Moment>, String> {
        if fineness == Fineness::Exact {
            return self.within(EXACT).await;
        }
        let kept = || self.coarse.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(moment) = kept().as_ref().filter(|moment| moment.at.elapsed() < COARSE) {
            return Ok(Arc::clone(moment));
        }
        let moment = self.within(EXACT).await?;
        let mut kept = kept();
        // Somebody else may have been sooner, and all are shown the same.
        match kept.as_ref().filter(|kept| kept.at.elapsed() < COARSE) {
            Some(kept) => Ok(Arc::clone(kept)),
            None => Ok(Arc::clone(kept.insert(moment))),
        }
    }

    /// A moment, however long ago.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn any(&self) -> Result<Arc<Moment>, String> {
        self.within(Duration::MAX).await
    }

    async fn within(&self, longest_age: Duration) -> Result<Arc<Moment>, String> {
        let sampler = self.sampler.get_or_init(Sampler::start).as_ref();
        let sampler = sampler.ok_or("the host has no thread to read it")?;
        let mut last = sampler.last.clone();
        let fresh = async {
            loop {
                let found = last.borrow_and_update().clone().filter(|moment| moment.at.elapsed() < longest_age);
                if let Some(moment) = found {
                    return Ok(moment);
                }
                // Full: it is wanted already.
                let _ = sampler.wanted.try_send(());
                if last.changed().await.is_err() {
                    return Err("the thread that reads it has ended".to_owned());
                }
            }
        };
        timeout(PATIENCE, fresh).await.unwrap_or_else(|_late| Err("the system does not answer in time".to_owned()))
    }

    /// What a model does.
    pub(super) fn model(&self, model: &PooledModel, fineness: Fineness) -> ModelMoment {
        let models = match fineness {
            Fineness::Exact => &self.exact_models,
            Fineness::Coarse => &self.coarse_models,
        };
        let mut models = models.lock().unwrap_or_else(PoisonError::into_inner);
        match models.get(model.name()).filter(|kept| kept.at.elapsed() < fineness.longest_age()) {
            Some(kept) => kept.clone(),
            None => {
                let read = ModelMoment::read(model);
                models.insert(Arc::clone(&read.name), read.clone());
                read
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_who_ask_at_a_time_share_a_reading_and_nobody_has_more_of_them() {
        let readings = Arc::new(Readings::default());
        let begin = Instant::now();
        let ask = |fineness| {
            let readings = Arc::clone(&readings);
            tokio::spawn(async move { readings.now(fineness).await.unwrap() })
        };
        let all: Vec<_> = (0..20).map(|_| ask(Fineness::Exact)).collect();
        let mut seen = Vec::new();
        for one in all {
            seen.push(one.await.unwrap());
        }
        assert!(seen.iter().all(|moment| Arc::ptr_eq(moment, &seen[0])), "one reading for all");
        let (_, over) = seen[0].busy.unwrap();
        assert!(over >= WINDOW && over < LONGEST_WINDOW, "{over:?}");
        // As fast as one can ask, for half a second.
        let mut times = vec![seen[0].at];
        while begin.elapsed() < Duration::from_millis(900) {
            let moment = readings.now(Fineness::Exact).await.unwrap();
            if moment.at != times[times.len() - 1] {
                times.push(moment.at);
            }
        }
        assert!(times.len() > 2, "there are new ones");
        assert!(times.windows(2).all(|two| two[1] - two[0] >= EXACT), "{times:?}");
    }

    #[tokio::test]
    async fn a_rounded_reading_lasts_a_second() {
        let readings = Readings::default();
        let first = readings.now(Fineness::Coarse).await.unwrap();
        while first.at.elapsed() < Duration::from_millis(400) {
            readings.now(Fineness::Exact).await.unwrap();
        }
        let second = readings.now(Fineness::Coarse).await.unwrap();
        assert!(Arc::ptr_eq(&first, &second) || first.at.elapsed() >= COARSE, "also beside others who are shown more");
        assert!(readings.any().await.unwrap().at > first.at);
    }
}
