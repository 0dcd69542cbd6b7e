//! The clocks of a guest: exact, or too coarse to time a neighbour by.
//!
//! How long something takes that is shared (a prefix cache, a processor's caches)
//! tells about others who share it, if it can be timed finely enough. So there is
//! one place that decides how fine a guest's time is, and everything that a guest
//! can tell time by goes through it: both clocks, in WASI 0.2 and 0.3, and the
//! waits, which would otherwise be a finer clock than the one that is read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;
use wasmtime::Result;
use wasmtime::component::{Accessor, HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::HostWallClock;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock as p2;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use wasmtime_wasi::p3::bindings::clocks::monotonic_clock as p3;

use crate::store::StoreData;

/// How fine the time is that a guest is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clocks {
    /// As fine as the host has it: for components of the operator.
    #[default]
    Exact,
    /// Rounded down to whole grains, and waits rounded up to them: for
    /// components of others.
    Coarse(
        /// The grain. Zero is taken for a nanosecond.
        Duration,
    ),
}

impl Clocks {
    /// For components of others: whole milliseconds.
    pub const TENANT: Self = Self::Coarse(Duration::from_millis(1));

    fn grain(self) -> u64 {
        match self {
            Self::Exact => 1,
            Self::Coarse(grain) => nanoseconds(grain).max(1),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The time of one store. Both clocks are one, so that their grains begin
/// together: the difference of two would be a finer one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuestClock {
    /// When the store was made,
    start: Instant,
    /// and what time it was then, in nanoseconds since 1970.
    epoch: u64,
    /// In nanoseconds.
    grain: u64,
}

impl GuestClock {
    pub(crate) fn start(clocks: Clocks) -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), epoch: nanoseconds(epoch), grain: clocks.grain() }
    }

    fn down(self, time: u64) -> u64 {
        time - time % self.grain
    }

    fn up(self, time: u64) -> u64 {
        time.div_ceil(self.grain).saturating_mul(self.grain)
    }

    /// Nanoseconds since 1970, as exact as the host has it.
    fn exact(self) -> u64 {
        self.epoch.saturating_add(nanoseconds(self.start.elapsed()))
    }

    /// Nanoseconds of the monotonic clock.
    fn monotonic(self) -> u64 {
        self.down(self.exact()) - self.down(self.epoch)
    }

    /// What to wait for until the monotonic clock shows `mark`.
    fn until(self, mark: u64) -> Wait {
        self.at(self.down(self.epoch).saturating_add(mark))
    }

    /// What to wait for until `time` has passed.
    fn after(self, time: u64) -> Wait {
        if time == 0 { Wait::Turn { taken: false } } else { self.at(self.exact().saturating_add(time)) }
    }

    /// What to wait for until so many nanoseconds since 1970, or the next grain.
    fn at(self, time: u64) -> Wait {
        let time = self.up(time);
        if time <= self.exact() {
            return Wait::Turn { taken: false };
        }
        let when = self.start.checked_add(Duration::from_nanos(time - self.epoch));
        when.map_or(Wait::Forever, Wait::Until)
    }
}

impl HostWallClock for GuestClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(self.grain)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.down(self.exact()))
    }
}

/// What a guest waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// Nothing, but others have their turn: a guest that polls in a loop must
    /// not keep the runtime from what it polls for.
    Turn {
        taken: bool,
    },
    Until(Instant),
    /// The time is beyond what can be counted.
    Forever,
}

impl Wait {
    async fn wait(&mut self) {
        match self {
            Self::Turn { taken: true } => {}
            Self::Turn { taken } => {
                *taken = true;
                tokio::task::yield_now().await;
            }
            Self::Until(when) => tokio::time::sleep_until(*when).await,
            Self::Forever => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Pollable for Wait {
    async fn ready(&mut self) {
        self.wait().await;
    }
}

pub(crate) struct ClockView<'a> {
    clock: GuestClock,
    table: &'a mut ResourceTable,
}

struct HasClock;

impl HasData for HasClock {
    type Data<'a> = ClockView<'a>;
}

fn view(data: &mut StoreData) -> ClockView<'_> {
    ClockView { clock: data.clock, table: &mut data.table }
}

/// Puts the clock in the place of wasmtime's own, for which the linker must allow
/// shadowing.
pub(crate) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    p2::add_to_linker::<_, HasClock>(linker, view)?;
    p3::add_to_linker::<_, HasClock>(linker, view)
}

impl ClockView<'_> {
    fn subscribe(&mut self, wait: Wait) -> Result<Resource<DynPollable>> {
        let wait = self.table.push(wait)?;
        subscribe(self.table, wait)
    }
}

impl p2::Host for ClockView<'_> {
    fn now(&mut self) -> Result<p2::Instant> {
        Ok(self.clock.monotonic())
    }

    fn resolution(&mut self) -> Result<p2::Duration> {
        Ok(self.clock.grain)
    }

    fn subscribe_instant(&mut self, when: p2::Instant) -> Result<Resource<DynPollable>> {
        self.subscribe(self.clock.until(when))
    }

    fn subscribe_duration(&mut self, when: p2::Duration) -> Result<Resource<DynPollable>> {
        self.subscribe(self.clock.after(when))
    }
}

impl p3::Host for ClockView<'_> {
    fn now(&mut self) -> Result<p3::Mark> {
        Ok(self.clock.monotonic())
    }

    fn get_resolution(&mut self) -> Result<u64> {
        Ok(self.clock.grain)
    }
}

impl<T> p3::HostWithStore<T> for HasClock {
    async fn wait_until(accessor: &Accessor<T, Self>, when: p3::Mark) -> Result<()> {
        let mut wait = accessor.with(|mut access| access.get().clock.until(when));
        wait.wait().await;
        Ok(())
    }

    async fn wait_for(accessor: &Accessor<T, Self>, how_long: u64) -> Result<()> {
        let mut wait = accessor.with(|mut access| access.get().clock.after(how_long));
        wait.wait().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAIN: Duration = Duration::from_millis(10);

    fn coarse() -> GuestClock {
        GuestClock::start(Clocks::Coarse(GRAIN))
    }

    #[tokio::test(start_paused = true)]
    async fn both_clocks_go_by_whole_grains_at_the_same_moments() {
        let clock = coarse();
        let mut shown = Vec::new();
        for _ in 0..1000 {
            tokio::time::advance(Duration::from_micros(100)).await;
            shown.push((clock.monotonic(), clock.now()));
        }
        let grain = nanoseconds(GRAIN);
        assert!(shown.iter().all(|(mark, now)| mark % grain == 0 && now.as_nanos() % u128::from(grain) == 0));
        shown.dedup();
        assert!((10..=11).contains(&shown.len()), "grains are seen to begin ten times, on both clocks: {shown:?}");
        assert_eq!(clock.resolution(), GRAIN);
    }

    #[tokio::test(start_paused = true)]
    async fn short_waits_end_with_a_grain() {
        let clock = coarse();
        tokio::time::advance(Duration::from_millis(3)).await;
        for wait in [clock.after(1), clock.after(1_000_000), clock.until(clock.monotonic() + 1)] {
            let Wait::Until(when) = wait else { panic!("{wait:?}") };
            let end = clock.epoch + nanoseconds(when - clock.start);
            assert_eq!(end % nanoseconds(GRAIN), 0);
        }
        let before = clock.monotonic();
        let begin = Instant::now();
        for _ in 0..5 {
            clock.after(1).wait().await;
        }
        // The first ends with the grain that had begun.
        assert!(begin.elapsed() > GRAIN * 4, "{:?}", begin.elapsed());
        assert_eq!(clock.monotonic() - before, nanoseconds(GRAIN) * 5);
    }

    #[tokio::test(start_paused = true)]
    async fn times_that_are_past_or_never_come_are_no_error() {
        for clock in [coarse(), GuestClock::start(Clocks::Exact)] {
            assert_eq!(clock.after(0), Wait::Turn { taken: false });
            assert_eq!(clock.until(0), Wait::Turn { taken: false });
            for wait in [clock.after(u64::MAX), clock.until(u64::MAX)] {
                assert!(!matches!(wait, Wait::Turn { .. }), "{wait:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_exact_clock_is_exact() {
        let clock = GuestClock::start(Clocks::Exact);
        let before = (clock.monotonic(), clock.now());
        tokio::time::advance(Duration::from_nanos(7)).await;
        assert_eq!((clock.monotonic(), clock.now()), (before.0 + 7, before.1 + Duration::from_nanos(7)));
        assert_eq!(Clocks::Coarse(Duration::ZERO).grain(), 1);
    }
}
