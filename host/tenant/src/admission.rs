//! Letting requests in, at once or in turn.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::limit::{Exceeded, Limit, Rate, Stock};
use crate::quota::Held;
use crate::tenant::Tenant;
use crate::waiting::Ticket;

/// A request that was let in. Its place is free again when this is dropped.
#[derive(Debug)]
#[must_use = "the request's place is given up when this is dropped"]
pub struct Admission {
    tenant: Arc<Tenant>,
    _place: Held,
}

impl Admission {
    pub(crate) fn now(tenant: &Arc<Tenant>) -> Result<Self, Exceeded> {
        let quota = tenant.quota(Stock::Requests);
        if quota.waiters().any() {
            let limit = Limit::Stock(Stock::Requests);
            return Err(Exceeded { limit, value: quota.limit(), retry_after: Some(crate::quota::RETRY) });
        }
        // The place first: it comes back if the minute is used up.
        let place = quota.try_hold(1)?;
        tenant.rate(Rate::Requests).take(1)?;
        Ok(Self { tenant: Arc::clone(tenant), _place: place })
    }

    /// Whose request it is.
    #[must_use]
    pub fn tenant(&self) -> &Arc<Tenant> {
        &self.tenant
    }
}

/// A request that is let in when there is a place, see
/// [`Tenant::admit_or_wait`]. It ends with an error when the minute is used up,
/// or when no more may wait.
#[derive(Debug)]
pub struct Admitting {
    tenant: Arc<Tenant>,
    state: State,
}

#[derive(Debug)]
enum State {
    Asked,
    Waiting { ticket: Ticket, _queued: Held },
    Done,
}

impl Admitting {
    pub(crate) fn new(tenant: Arc<Tenant>) -> Self {
        Self { tenant, state: State::Asked }
    }

    /// The first look: in, out, or into the queue.
    fn begin(&mut self, context: &Context<'_>) -> Option<Result<Admission, Exceeded>> {
        match Admission::now(&self.tenant) {
            // Of no use to wait for where the limit allows nothing.
            Err(Exceeded { limit: Limit::Stock(Stock::Requests), retry_after: Some(_), .. }) => {}
            other => return Some(other),
        }
        let queued = match self.tenant.hold(Stock::Queued, 1) {
            Ok(queued) => queued,
            Err(full) => return Some(Err(full)),
        };
        // Counted when it came, so that a queue cannot save minutes up.
        if let Err(exceeded) = self.tenant.rate(Rate::Requests).take(1) {
            return Some(Err(exceeded));
        }
        let ticket = self.tenant.quota(Stock::Requests).waiters().enter(context.waker().clone());
        self.state = State::Waiting { ticket, _queued: queued };
        None
    }
}

impl Future for Admitting {
    type Output = Result<Admission, Exceeded>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if matches!(self.state, State::Asked)
            && let Some(answer) = self.begin(context)
        {
            self.state = State::Done;
            return Poll::Ready(answer);
        }
        let State::Waiting { ticket, .. } = self.state else { return Poll::Pending };
        let tenant = Arc::clone(&self.tenant);
        let quota = tenant.quota(Stock::Requests);
        if !quota.waiters().is_first(ticket, context.waker()) {
            return Poll::Pending;
        }
        // A place that comes free after this look wakes the first one, who is
        // this one and has just left its waker.
        let answer = match quota.try_hold(1) {
            Ok(place) => Ok(Admission { tenant: Arc::clone(&tenant), _place: place }),
            // The limit was set to nothing meanwhile.
            Err(never @ Exceeded { retry_after: None, .. }) => Err(never),
            Err(_) => return Poll::Pending,
        };
        self.state = State::Done;
        quota.waiters().leave(ticket);
        Poll::Ready(answer)
    }
}

impl Drop for Admitting {
    fn drop(&mut self) {
        if let State::Waiting { ticket, .. } = self.state {
            self.tenant.quota(Stock::Requests).waiters().leave(ticket);
        }
    }
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
