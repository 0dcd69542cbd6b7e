//! The connections to a server, and whose they are.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};

use crate::ask::{Abilities, Hear};
use crate::connect::{Service, Way};
use crate::error::ServerError;
use crate::handler::Handler;

/// Connections of all tenants to a server: each is a session there, or a program here.
const MOST: usize = 64;

/// Connections of one tenant to it.
const MOST_OF_TENANT: usize = 8;

/// Calls in a row that nothing comes of before a connection is taken for stuck.
const MOST_LATE: usize = 3;

/// After so long without a call a connection ends.
pub(crate) const IDLE: Duration = Duration::from_secs(300);

/// A connection, and room for it.
pub(crate) struct Line {
    service: Service,
    since: Mutex<Instant>,
    /// Calls in a row that were given up; one that is answered begins anew.
    late: AtomicUsize,
    _room: OwnedSemaphorePermit,
}

impl Deref for Line {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

impl Line {
    /// Whether it can be used for another call.
    fn is_good(&self) -> bool {
        let is_stuck = self.late.load(Ordering::Acquire) >= MOST_LATE;
        let is_open = !self.service.is_closed() && !self.service.peer().is_transport_closed();
        is_open && !is_stuck && !self.service.service().has_heard_enough()
    }

    fn touch(&self) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_idle(&self) -> bool {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= IDLE
    }
}

/// Those of one tenant.
#[derive(Default)]
struct Own {
    /// For calls that are asked nothing, any number of them at a time. Held while one is
    /// made, so that only one is.
    shared: Arc<AsyncMutex<Option<Arc<Line>>>>,
    /// For calls that can be asked, each for one at a time.
    free: Vec<(Abilities, Arc<Line>)>,
    /// Those that such calls have now.
    taken: usize,
}

/// The connections to a server.
pub(crate) struct Lines {
    own: Mutex<HashMap<Arc<str>, Own>>,
    room: Arc<Semaphore>,
    /// Whether somebody looks after those that become idle.
    is_watched: AtomicBool,
}

impl Default for Lines {
    fn default() -> Self {
        Self { own: Mutex::default(), room: Arc::new(Semaphore::new(MOST)), is_watched: AtomicBool::new(false) }
    }
}

impl Lines {
    /// A connection for a call of a tenant, which hears what it is to hear.
    pub(crate) async fn take(
        self: &Arc<Self>,
        tenant: &Arc<str>,
        way: &Way,
        abilities: Abilities,
        hear: &Arc<dyn Hear>,
    ) -> Result<Taken, ServerError> {
        if abilities.is_empty() {
            return Ok(Taken { line: self.shared(tenant, way).await?, own: None });
        }
        let own = self.own_line(tenant, way, abilities).await?;
        own.line.service().give_to(Some(Arc::clone(hear)));
        Ok(Taken { line: Arc::clone(&own.line), own: Some(own) })
    }

    /// The one that calls share which are asked nothing.
    pub(crate) async fn shared(self: &Arc<Self>, tenant: &Arc<str>, way: &Way) -> Result<Arc<Line>, ServerError> {
        let slot = Arc::clone(&self.lock().entry(Arc::clone(tenant)).or_default().shared);
        let mut slot = slot.lock_owned().await;
        if let Some(line) = slot.as_ref().filter(|line| line.is_good()) {
            line.touch();
            return Ok(Arc::clone(line));
        }
        *slot = None;
        // It goes on if whoever asks has no more time: the next one has it then.
        let (lines, way) = (Arc::clone(self), way.clone());
        let opening = tokio::spawn(async move {
            let line = lines.open(&way, Abilities::default()).await?;
            *slot = Some(Arc::clone(&line));
            Ok(line)
        });
        opening.await.unwrap_or_else(|_| Err(ServerError::Unreachable("the host is ending".to_owned())))
    }

    async fn own_line(
        self: &Arc<Self>,
        tenant: &Arc<str>,
        way: &Way,
        abilities: Abilities,
    ) -> Result<OwnLine, ServerError> {
        let found = {
            let mut all = self.lock();
            let own = all.entry(Arc::clone(tenant)).or_default();
            own.free.retain(|(_, line)| line.is_good());
            let found = own.free.iter().position(|(of, _)| *of == abilities).map(|at| own.free.swap_remove(at).1);
            // One that is for other questions gives way.
            if found.is_none() && own.taken + own.free.len() >= MOST_OF_TENANT && !own.free.is_empty() {
                own.free.remove(0);
            }
            if found.is_none() && own.taken >= MOST_OF_TENANT {
                return Err(ServerError::Busy(format!(
                    "{MOST_OF_TENANT} calls that can be asked go on already; try again later"
                )));
            }
            own.taken += 1;
            found
        };
        // Counted from here on, whatever comes of it.
        let counted = Counted { lines: Arc::clone(self), tenant: Arc::clone(tenant) };
        let line = match found {
            Some(line) => line,
            None => self.open(way, abilities).await?,
        };
        line.touch();
        Ok(OwnLine { counted, line, abilities })
    }

    async fn open(self: &Arc<Self>, way: &Way, abilities: Abilities) -> Result<Arc<Line>, ServerError> {
        let busy = || ServerError::Busy(format!("there are {MOST} connections to it; try again later"));
        let room = Arc::clone(&self.room).try_acquire_owned().or_else(|_| {
            self.sweep();
            Arc::clone(&self.room).try_acquire_owned().map_err(|_| busy())
        })?;
        let service = way.connect(Handler::new(abilities)).await?;
        let (since, late) = (Mutex::new(Instant::now()), AtomicUsize::new(0));
        let line = Arc::new(Line { service, since, late, _room: room });
        if !self.is_watched.swap(true, Ordering::AcqRel) {
            tokio::spawn(end_when_idle(Arc::downgrade(self)));
        }
        Ok(line)
    }

    /// Ends those that nobody has used for long, and forgets tenants without any.
    fn sweep(&self) {
        self.lock().retain(|_, own| {
            own.free.retain(|(_, line)| line.is_good() && !line.is_idle());
            let mut is_used = own.taken > 0 || !own.free.is_empty();
            match own.shared.try_lock() {
                Ok(mut slot) => {
                    let idle = |line: &Arc<Line>| !line.is_good() || (line.is_idle() && Arc::strong_count(line) == 1);
                    if slot.as_ref().is_some_and(idle) {
                        *slot = None;
                    }
                    is_used |= slot.is_some() || Arc::strong_count(&own.shared) > 1;
                }
                // It is being made.
                Err(_) => is_used = true,
            }
            is_used
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, Own>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after the connections as long as there may be any.
async fn end_when_idle(lines: Weak<Lines>) {
    loop {
        tokio::time::sleep(IDLE + Duration::from_secs(1)).await;
        let Some(lines) = lines.upgrade() else { return };
        lines.sweep();
    }
}

/// A connection while a call uses it.
pub(crate) struct Taken {
    line: Arc<Line>,
    own: Option<OwnLine>,
}

impl Taken {
    /// Gives it back, for another call.
    pub(crate) fn give_back(self) {
        self.line.late.store(0, Ordering::Release);
        self.line.touch();
        if let Some(own) = self.own {
            own.give_back();
        }
    }

    /// Gives it back after a call that was given up. One that the call had to itself ends,
    /// since the server may still be at it.
    pub(crate) fn give_back_late(self) {
        self.line.late.fetch_add(1, Ordering::AcqRel);
    }

    /// Has no other call use it.
    pub(crate) fn end(self) {
        self.line.late.store(MOST_LATE, Ordering::Release);
    }
}

impl Deref for Taken {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.line.service
    }
}

/// One that a call has to itself. Ended if it is not given back: the server may still be
/// at the call.
struct OwnLine {
    counted: Counted,
    line: Arc<Line>,
    abilities: Abilities,
}

impl OwnLine {
    fn give_back(self) {
        let Self { counted, line, abilities } = self;
        line.service().give_to(None);
        if line.is_good() {
            counted.lines.lock().entry(Arc::clone(&counted.tenant)).or_default().free.push((abilities, line));
        }
    }
}

/// One of those that calls have which can be asked.
struct Counted {
    lines: Arc<Lines>,
    tenant: Arc<str>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(own) = self.lines.lock().get_mut(&self.tenant) {
            own.taken = own.taken.saturating_sub(1);
        }
    }
}
