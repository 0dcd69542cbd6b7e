//! Where a task works: beside connections, or apart on the guest threads.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use nala_tenant::Tenant;

use super::{Entrance, Fresh, LONG, Typical};
use crate::control::RequestControl;
use crate::turns::Turns;

/// A task that answers a request.
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Who a task works for, and where it may.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) control: Arc<RequestControl>,
    pub(crate) typical: Arc<Typical>,
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) guest: Entrance,
}

impl Place {
    /// Whether the task may keep connections waiting for a little: its tenant's guests
    /// have used no more of late than they may without waiting for others. Where there
    /// are no tenants, short requests keep nobody waiting.
    pub(crate) fn is_welcome(&self) -> bool {
        let is_alone = self.tenant.name().is_local();
        let is_short = || self.typical.is_short() && self.control.is_short();
        (is_alone && is_short()) || self.turns.may_go_on(&self.tenant, Duration::ZERO)
    }

    /// Runs a task where it is best.
    pub(crate) fn begin(self, task: Task) {
        match self.guest.fresh().filter(|_| self.is_welcome()) {
            Some(fresh) => self.go_here(task, Some(fresh)),
            None => self.go_apart(task),
        }
    }

    fn go_here(self, task: Task, fresh: Option<Fresh>) {
        let here = self.control.origin.here.clone();
        here.spawn(Here { task: Some(task), place: self, fresh });
    }

    fn go_apart(self, task: Task) {
        let guest = self.guest.threads.clone();
        guest.spawn(Apart { task: Some(task), place: Some(self) });
    }
}

/// A task beside connections, until its guest computes for long, or is seen computing
/// while its tenant owes something: then it goes on on the guest threads.
///
/// Most requests are answered within a fraction of a millisecond or wait most of the
/// time. To wake another thread for each would take as long as to answer it.
struct Here {
    task: Option<Task>,
    place: Place,
    fresh: Option<Fresh>,
}

impl Future for Here {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(task) = &mut this.task else { return Poll::Ready(()) };
        let poll = task.as_mut().poll(cx);
        this.fresh = None;
        if poll.is_ready() {
            return Poll::Ready(());
        }
        let Place { control, typical, .. } = &this.place;
        if !control.was_computing() {
            control.waits();
            return Poll::Pending;
        }
        // A tick has come, and its tenant has been told what it owes.
        let computes_for_long = control.computes_for_long();
        if !computes_for_long && this.place.is_welcome() {
            return Poll::Pending;
        }
        if computes_for_long && control.is_an_example() {
            typical.note(LONG);
        }
        if let Some(task) = this.task.take() {
            this.place.clone().go_apart(task);
        }
        Poll::Ready(())
    }
}

/// A task on the guest threads, until it waits for something and its tenant owes nothing:
/// what comes then, like the tokens of a model, is handed on beside connections, and does
/// not wait behind other tenants' guests.
struct Apart {
    task: Option<Task>,
    place: Option<Place>,
}

impl Future for Apart {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let (Some(task), Some(place)) = (&mut this.task, &this.place) else { return Poll::Ready(()) };
        if task.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if place.control.was_computing() || !place.is_welcome() {
            return Poll::Pending;
        }
        place.control.waits();
        if let (Some(task), Some(place)) = (this.task.take(), this.place.take()) {
            place.go_here(task, None);
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};

    use super::*;
    use crate::outbound::Origin;
    use crate::threads::{GuestThreads, NICENESS};

    /// Where a task was: the name of the thread, and how nice it is.
    type At = (Option<String>, i32);

    fn here() -> At {
        let name = std::thread::current().name().map(str::to_owned);
        (name, rustix::process::getpriority_process(None).unwrap())
    }

    fn beside() -> At {
        (Some("nala worker".to_owned()), nala_machine::niceness_behind(0).unwrap())
    }

    fn apart() -> At {
        (Some("nala guest".to_owned()), nala_machine::niceness_behind(NICENESS).unwrap())
    }

    /// The place of a request, and what has its threads.
    fn place() -> (Place, GuestThreads, Runtime) {
        let guest = GuestThreads::start(1).unwrap();
        let outer = Builder::new_multi_thread().worker_threads(1).thread_name("nala worker").enable_all().build();
        let outer = outer.unwrap();
        let place = Place {
            control: Arc::new(RequestControl::of_nothing(Origin::client(outer.handle().clone()))),
            typical: Arc::default(),
            tenant: Tenant::sole(),
            turns: Arc::new(Turns::new(1, 1, guest.entrance())),
            guest: guest.entrance(),
        };
        (place, guest, outer)
    }

    /// What a guest does in a part of its work.
    type Part = fn(&Place);

    /// Runs a task that tells where it is between its parts.
    fn places(place: &Place, parts: Vec<Part>) -> Vec<At> {
        let (sender, places) = std::sync::mpsc::channel();
        let own = place.clone();
        let task = async move {
            for part in parts {
                sender.send(here()).unwrap();
                part(&own);
                tokio::task::yield_now().await;
            }
            sender.send(here()).unwrap();
        };
        place.clone().begin(Box::pin(task));
        places.iter().collect()
    }

    fn computes(place: &Place, millis: u64) {
        place.control.computed(Duration::from_millis(millis));
    }

    /// The same, and a tick comes.
    fn is_seen(place: &Place, millis: u64) {
        computes(place, millis);
        place.control.note_computing();
    }

    const WAITS: Part = |_| {};

    #[test]
    fn a_task_goes_apart_while_it_computes_for_long_and_comes_back() {
        let (place, _guest, _outer) = place();
        let own = here().1;
        let (short, long, longer): (Part, Part, Part) = (|p| is_seen(p, 4), |p| is_seen(p, 5), |p| is_seen(p, 500));
        // What it was seen to compute last is not a wait yet.
        assert_eq!(
            places(&place, vec![WAITS, short, long, longer, longer, WAITS, WAITS, longer, WAITS]),
            [beside(), beside(), beside(), apart(), apart(), apart(), beside(), beside(), apart(), beside()]
        );
        assert_eq!(here().1, own, "only they step back");
    }

    #[test]
    fn one_that_computes_and_waits_by_turns_is_seen_to_compute_for_long() {
        let (place, _guest, _outer) = place();
        let (computes, is_seen): (Part, Part) = (|p| computes(p, 4), |p| is_seen(p, 4));
        assert_eq!(
            places(&place, vec![computes, computes, is_seen, WAITS, computes, WAITS, WAITS, is_seen]),
            [beside(), beside(), beside(), apart(), beside(), beside(), beside(), beside(), beside()]
        );
    }

    #[test]
    fn one_whose_tenant_comes_to_owe_goes_apart_when_it_is_seen() {
        let (place, _guest, _outer) = place();
        // Its handler is no short one.
        place.typical.note(LONG);
        let owes: Part = |p| {
            p.turns.note(&p.tenant, Duration::from_secs(3600));
            is_seen(p, 1);
        };
        let small: Part = |p| is_seen(p, 1);
        // However little it computes, and however often it waits.
        assert_eq!(
            places(&place, vec![small, WAITS, owes, WAITS, small, WAITS]),
            [beside(), beside(), beside(), apart(), apart(), apart(), apart()]
        );
        let (next, guest) = ([WAITS], [apart(), apart()]);
        assert_eq!(places(&place, next.to_vec()), guest, "and those that come begin there");
    }

    #[test]
    fn a_short_handler_is_welcome_for_as_long_as_its_request_is_short() {
        let (place, _guest, _outer) = place();
        place.turns.note(&place.tenant, Duration::from_secs(3600));
        let (computes, is_seen): (Part, Part) = (|p| computes(p, 2), |p| is_seen(p, 1));
        assert_eq!(
            places(&place, vec![is_seen, computes, is_seen, WAITS, WAITS, is_seen]),
            [beside(), beside(), beside(), beside(), beside(), beside(), apart()]
        );
    }

    #[test]
    fn a_request_is_one_example_of_its_handler() {
        let (place, _guest, _outer) = place();
        let long: Part = |p| is_seen(p, 500);
        let seen = places(&place, vec![long, WAITS, long, WAITS, long, WAITS]);
        assert_eq!(seen.iter().filter(|at| **at == apart()).count(), 3, "{seen:?}");
        let once = Typical::default();
        once.note(LONG);
        assert_eq!(format!("{:?}", place.typical), format!("{once:?}"));
        assert!(!place.control.is_an_example(), "nor is it one when it ends");
    }

    #[test]
    fn tasks_end_with_the_threads() {
        let (place, guest, _outer) = place();
        let (sender, places) = std::sync::mpsc::channel();
        let own = place.clone();
        place.begin(Box::pin(async move {
            loop {
                sender.send(here()).unwrap();
                is_seen(&own, 500);
                tokio::task::yield_now().await;
            }
        }));
        places.iter().find(|at| *at == apart()).unwrap();
        drop(guest);
        let begin = std::time::Instant::now();
        // Until nobody can send any more.
        while places.recv().is_ok() {
            assert!(begin.elapsed() < Duration::from_secs(20), "it goes on without its threads' owner");
        }
    }
}
