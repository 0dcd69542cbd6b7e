//! Threads that follow grammars, so that the engine thread need not.

mod queue;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use self::queue::Queue;
use super::guide::{Ends, Jump};
use crate::Token;
use crate::affinity::{self, Affinity};
use crate::constraint::{Grammar, Matcher, TokenMask};
use crate::error::Error;

/// The most threads. More than cores, of which one tenant has half at the most: a
/// grammar that is slow on purpose takes turns with those of others.
const MOST: usize = 8;

/// A matcher and what it has taken in.
pub(super) struct Feed {
    grammar: Grammar,
    /// None: at the grammar's beginning, and not made yet.
    matcher: Option<Box<Matcher>>,
    taken: Vec<Token>,
}

impl Feed {
    /// At the beginning of a grammar.
    pub(super) fn new(grammar: &Grammar) -> Self {
        Self { grammar: grammar.clone(), matcher: None, taken: Vec::new() }
    }

    /// Goes to the end of `tokens`, which are all of the text so far, for as long as
    /// it may.
    fn go_to(&mut self, tokens: &[Token], may: &May) -> Result<&mut Matcher, Error> {
        may.go_on()?;
        let common = self.taken.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let back = self.taken.len() - common;
        // Some grammars cannot go back: from the beginning, then.
        let gone_back = self.matcher.take().and_then(|mut matcher| matcher.rollback(back).is_ok().then_some(matcher));
        self.taken.truncate(if gone_back.is_some() { common } else { 0 });
        let matcher = gone_back.unwrap_or_else(|| Box::new(Matcher::new(&self.grammar)));
        let matcher = self.matcher.insert(matcher);
        for &token in tokens.get(self.taken.len()..).unwrap_or_default() {
            may.go_on()?;
            if matcher.accept(&[token])? == 0 {
                let text = "a token that was given to the session is not allowed by its grammar; call `constrain` \
                            without a grammar before tokens that are not part of the text";
                return Err(Error::Constraint(text.into()));
            }
            self.taken.push(token);
        }
        Ok(matcher)
    }
}

/// Something to find out.
pub(super) struct Job {
    pub(super) feed: Feed,
    /// The text so far, from the grammar's beginning.
    pub(super) tokens: Vec<Token>,
    pub(super) jump: Jump,
    /// Who pays for it with turns.
    pub(super) tenant: Arc<str>,
    /// The most CPU time it may take: that it waits behind others is not the grammar's
    /// doing.
    pub(super) time: Duration,
}

/// What was found out, in this order.
pub(super) enum News {
    /// What must come next.
    Forced(Vec<Token>, Ends),
    /// What may come after that, and the matcher back.
    Found(Found),
}

pub(super) struct Found {
    pub(super) feed: Feed,
    pub(super) mask: Result<TokenMask, Error>,
    /// CPU time that it took.
    pub(super) took: Duration,
}

/// A job under way. It is called off when this is dropped.
pub(super) struct Errand {
    pub(super) news: Receiver<News>,
    called_off: Arc<AtomicBool>,
}

impl Errand {
    /// Has the worker come back soon, whatever it knows by then.
    pub(super) fn call_off(&self) {
        self.called_off.store(true, Ordering::Release);
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        self.call_off();
    }
}

/// A job with what its worker needs beside it.
struct Order {
    job: Job,
    news: Sender<News>,
    called_off: Arc<AtomicBool>,
}

/// The threads. They end with it.
pub(super) struct Workers {
    queue: Arc<Queue<Order>>,
    threads: usize,
    affinity: Affinity,
}

impl Workers {
    /// They run on these CPUs.
    pub(super) fn new(affinity: Affinity) -> Self {
        Self { queue: Arc::new(Queue::new(MOST / 2)), threads: 0, affinity }
    }

    /// Hands over a job, or gives its matcher back where there is no thread for it.
    pub(super) fn send(&mut self, job: Job) -> Result<Errand, Feed> {
        // Started when they are needed: most models never see a grammar.
        while self.threads < MOST {
            let (queue, affinity) = (Arc::clone(&self.queue), self.affinity);
            let thread = std::thread::Builder::new().name("grammar".into());
            if let Err(error) = thread.spawn(move || {
                affinity.apply();
                affinity::step_back(affinity::FOLLOWING);
                work(&queue);
            }) {
                tracing::warn!(%error, "no further thread for grammars");
                break;
            }
            self.threads += 1;
        }
        if self.threads == 0 {
            return Err(job.feed);
        }
        let (news, heard) = channel();
        let called_off = Arc::new(AtomicBool::new(false));
        let errand = Errand { news: heard, called_off: Arc::clone(&called_off) };
        let tenant = Arc::clone(&job.tenant);
        self.queue.push(tenant, Order { job, news, called_off });
        Ok(errand)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn work(queue: &Queue<Order>) {
    while let Some((tenant, order)) = queue.pop() {
        // Should the grammar library panic, the channel closes, which says so.
        if std::panic::catch_unwind(AssertUnwindSafe(|| find_out(order))).is_err() {
            tracing::error!("following a grammar panicked; its run ends with an error");
        }
        queue.done(&tenant);
    }
}

/// Whether a job may go on.
struct May {
    called_off: Arc<AtomicBool>,
    /// What this thread will have used in all when the time is up.
    until: Duration,
}

impl May {
    fn go_on(&self) -> Result<(), Error> {
        if self.called_off.load(Ordering::Acquire) {
            return Err(Error::Cancelled);
        }
        if nala_machine::worked() >= self.until {
            return Err(too_much());
        }
        Ok(())
    }
}

/// What a grammar is refused with that takes too long over and over again.
pub(super) fn too_much() -> Error {
    Error::Constraint("this grammar takes too much work for each token; make it less ambiguous".into())
}

/// Nobody may listen any more: then there is nothing to be done about it.
fn find_out(order: Order) {
    let begin = nala_machine::worked();
    let Order { job, news, called_off } = order;
    let may = May { called_off, until: begin + job.time };
    let Job { mut feed, tokens, jump, .. } = job;
    let mask = follow(&mut feed, &tokens, jump, &may, &news);
    let took = nala_machine::worked().saturating_sub(begin);
    let _ = news.send(News::Found(Found { feed, mask, took }));
}

fn follow(feed: &mut Feed, tokens: &[Token], jump: Jump, may: &May, news: &Sender<News>) -> Result<TokenMask, Error> {
    let matcher = feed.go_to(tokens, may)?;
    may.go_on()?;
    let mut forced = match jump {
        Jump::Ahead => matcher.forced(),
        Jump::Never => Vec::new(),
    };
    let legal = matcher.accept(&forced)?;
    forced.truncate(legal);
    let ends = if matcher.is_done() { Ends::Here } else { Ends::Open };
    let _ = news.send(News::Forced(forced.clone(), ends));
    let mask = may.go_on().and_then(|()| matcher.mask().cloned());
    feed.taken.extend(forced);
    mask
}
