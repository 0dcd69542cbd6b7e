use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::directory::Directory;
use crate::limit::Limits;
use crate::meter::Totals;
use crate::roster::Roster;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Somebody who waits, and how often they were woken.
struct Waiting {
    future: Pin<Box<Admitting>>,
    woken: Arc<Woken>,
}

impl Waiting {
    fn new(tenant: &Arc<Tenant>) -> Self {
        Self { future: Box::pin(tenant.admit_or_wait()), woken: Arc::default() }
    }

    fn poll(&mut self) -> Poll<Result<Admission, Exceeded>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn is_woken(&self) -> bool {
        self.woken.0.swap(0, Ordering::SeqCst) > 0
    }
}

fn tenant(limits: Limits) -> (Arc<ManualClock>, Directory, Arc<Tenant>) {
    let clock = Arc::new(ManualClock::default());
    let directory = Directory::new(Roster::local(limits), &Totals::default(), Arc::clone(&clock) as Arc<dyn Clock>);
    let tenant = directory.tenant("local").unwrap();
    (clock, directory, tenant)
}

#[test]
fn requests_are_counted_at_a_time_and_by_minute() {
    let limits = Limits::default().with(Stock::Requests, 2).with(Rate::Requests, 3);
    let (clock, _, tenant) = tenant(limits);
    let first = tenant.admit().unwrap();
    let _second = tenant.admit().unwrap();
    assert_eq!(tenant.admit().unwrap_err().limit, Stock::Requests.into());
    drop(first);
    let third = tenant.admit().unwrap();
    assert_eq!(third.tenant().name().as_str(), "local");
    drop(third);
    let exceeded = tenant.admit().unwrap_err();
    assert_eq!((exceeded.limit, exceeded.retry_after), (Rate::Requests.into(), Some(Duration::from_secs(20))));
    // The refusal took no place.
    assert_eq!(tenant.quota(Stock::Requests).used(), 1);
    clock.advance(Duration::from_secs(20));
    assert!(tenant.admit().is_ok());
}

#[test]
fn who_waits_comes_in_turn_and_nobody_passes() {
    let (_, _, tenant) = tenant(Limits::default().with(Stock::Requests, 1).with(Stock::Queued, 2));
    let running = tenant.admit().unwrap();
    let (mut a, mut b, mut c) = (Waiting::new(&tenant), Waiting::new(&tenant), Waiting::new(&tenant));
    assert!(a.poll().is_pending() && b.poll().is_pending());
    let Poll::Ready(Err(full)) = c.poll() else { panic!("the queue has two places") };
    assert_eq!(full.limit, Stock::Queued.into());
    drop(running);
    assert!(a.is_woken() && !b.is_woken());
    assert!(tenant.admit().is_err(), "one that waits comes first");
    assert!(b.poll().is_pending());
    let Poll::Ready(Ok(admission)) = a.poll() else { panic!("there is a place") };
    assert_eq!(tenant.quota(Stock::Queued).used(), 1);
    b.is_woken();
    drop(admission);
    assert!(b.is_woken());
    assert!(matches!(b.poll(), Poll::Ready(Ok(_))));
    drop((a, b));
    assert_eq!((tenant.quota(Stock::Queued).used(), tenant.quota(Stock::Requests).used()), (0, 0));
    assert!(tenant.admit().is_ok());
}

#[test]
fn who_gives_up_passes_the_turn_on() {
    let (_, _, tenant) = tenant(Limits::default().with(Stock::Requests, 1));
    let running = tenant.admit().unwrap();
    let (mut a, mut b) = (Waiting::new(&tenant), Waiting::new(&tenant));
    assert!(a.poll().is_pending() && b.poll().is_pending());
    drop(running);
    assert!(a.is_woken());
    // Woken, and gone before it looked.
    drop(a);
    assert!(b.is_woken());
    assert!(matches!(b.poll(), Poll::Ready(Ok(_))));
}

#[test]
fn a_limit_that_changes_is_for_those_who_wait_too() {
    let (_, directory, tenant) = tenant(Limits::default().with(Stock::Requests, 1));
    let _running = tenant.admit().unwrap();
    let (mut a, mut b) = (Waiting::new(&tenant), Waiting::new(&tenant));
    assert!(a.poll().is_pending() && b.poll().is_pending());
    directory.reload(Roster::local(Limits::default().with(Stock::Requests, 2)));
    assert!(a.is_woken());
    let Poll::Ready(Ok(_second)) = a.poll() else { panic!("there are two places") };
    directory.reload(Roster::local(Limits::default().with(Stock::Requests, 0)));
    assert!(b.is_woken());
    let Poll::Ready(Err(never)) = b.poll() else { panic!("there are no places any more") };
    assert_eq!(never.retry_after, None);
    assert_eq!(tenant.quota(Stock::Queued).used(), 0);
}

#[test]
fn threads_that_wait_all_come_in() {
    let (_, _, tenant) = tenant(Limits::unlimited().with(Stock::Requests, 3));
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let at_once = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
                for _ in 0..200 {
                    let mut future = Box::pin(tenant.admit_or_wait());
                    let admission = loop {
                        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                            Poll::Ready(answer) => break answer.unwrap(),
                            Poll::Pending => std::thread::park(),
                        }
                    };
                    assert!(at_once.fetch_add(1, Ordering::SeqCst) < 3);
                    std::thread::yield_now();
                    at_once.fetch_sub(1, Ordering::SeqCst);
                    drop(admission);
                }
            });
        }
    });
    assert_eq!(tenant.quota(Stock::Requests).used(), 0);
}
