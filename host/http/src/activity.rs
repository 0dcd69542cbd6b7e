//! What a connection is doing, to know when it has waited too long.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::HttpConfig;

/// Shared by the wire (which sees bytes), the service (which sees requests) and
/// the connection's watch (which acts on deadlines).
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    http2: bool,
    in_flight: u32,
    waiting: Waiting,
    since: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// For the rest of a request's head, or for the first byte of all.
    Head,
    /// For the next request.
    Next,
}

/// What the watch must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Look again at this time.
    LookAt(Instant),
    /// The head of a request took too long: cut.
    SlowHead,
    /// No request for too long: close in an orderly way.
    Idle,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State { http2: false, in_flight: 0, waiting: Waiting::Head, since: Instant::now() })))
    }

    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Bytes of a request arrived on an HTTP/1 connection.
    pub(crate) fn bytes_arrived(&self) {
        self.with(|state| {
            if state.in_flight == 0 && state.waiting == Waiting::Next {
                state.waiting = Waiting::Head;
                state.since = Instant::now();
            }
        });
    }

    /// The connection speaks HTTP/2: frames arrive that belong to no request,
    /// and heads are bounded by the protocol, so only idleness counts.
    pub(crate) fn is_http2(&self) {
        self.with(|state| {
            state.http2 = true;
            state.waiting = Waiting::Next;
        });
    }

    /// Whether [`Activity::is_http2`] was told.
    pub(crate) fn speaks_http2(&self) -> bool {
        self.with(|state| state.http2)
    }

    /// A request begins; it ends when the guard is dropped.
    pub(crate) fn request(&self) -> RequestGuard {
        self.with(|state| state.in_flight += 1);
        RequestGuard(self.clone())
    }

    pub(crate) fn verdict(&self, config: &HttpConfig) -> Verdict {
        let now = Instant::now();
        self.with(|state| {
            let (limit, late) = match (state.in_flight, state.waiting) {
                (0, Waiting::Head) => (config.header_timeout, Verdict::SlowHead),
                (0, Waiting::Next) => (config.idle_timeout, Verdict::Idle),
                // Look again when the connection could be idle for long enough
                // at the earliest, had the request ended now.
                _ => {
                    let soonest: Duration = config.header_timeout.min(config.idle_timeout);
                    return Verdict::LookAt(now + soonest);
                }
            };
            let deadline = state.since + limit;
            if deadline <= now { late } else { Verdict::LookAt(deadline) }
        })
    }
}

/// Counts a request as running until dropped.
#[derive(Debug)]
pub(crate) struct RequestGuard(Activity);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.with(|state| {
            state.in_flight = state.in_flight.saturating_sub(1);
            state.waiting = Waiting::Next;
            state.since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_head_is_given_less_time_than_a_pause_between_requests() {
        let config = HttpConfig::default();
        let activity = Activity::new();
        assert!(matches!(activity.verdict(&config), Verdict::LookAt(_)));
        tokio::time::advance(config.header_timeout).await;
        assert_eq!(activity.verdict(&config), Verdict::SlowHead);

        drop(activity.request());
        tokio::time::advance(config.header_timeout).await;
        assert!(matches!(activity.verdict(&config), Verdict::LookAt(_)));
        tokio::time::advance(config.idle_timeout - config.header_timeout).await;
        assert_eq!(activity.verdict(&config), Verdict::Idle);
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_request_is_never_late() {
        let config = HttpConfig::default();
        let activity = Activity::new();
        let guard = activity.request();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert!(matches!(activity.verdict(&config), Verdict::LookAt(_)));
        drop(guard);
        assert!(matches!(activity.verdict(&config), Verdict::LookAt(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_byte_of_the_next_head_starts_its_clock() {
        let config = HttpConfig::default();
        let activity = Activity::new();
        drop(activity.request());
        tokio::time::advance(config.idle_timeout / 2).await;
        activity.bytes_arrived();
        tokio::time::advance(config.header_timeout / 2).await;
        activity.bytes_arrived();
        assert!(matches!(activity.verdict(&config), Verdict::LookAt(_)));
        tokio::time::advance(config.header_timeout / 2).await;
        assert_eq!(activity.verdict(&config), Verdict::SlowHead);
    }
}
