//! Threads that follow grammars, so that the engine thread need not.

use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::guide::{Ends, Jump};
use crate::Token;
use crate::constraint::{Grammar, Matcher, TokenMask};
use crate::error::Error;

/// The most threads. More than cores: a grammar that is slow on purpose then takes
/// turns with the others and keeps none of them waiting.
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

    /// Goes to the end of `tokens`, which are all of the text so far.
    fn go_to(&mut self, tokens: &[Token]) -> Result<&mut Matcher, Error> {
        let common = self.taken.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let back = self.taken.len() - common;
        // Some grammars cannot go back: from the beginning, then.
        let gone_back = self.matcher.take().and_then(|mut matcher| matcher.rollback(back).is_ok().then_some(matcher));
        self.taken.truncate(if gone_back.is_some() { common } else { 0 });
        let matcher = gone_back.unwrap_or_else(|| Box::new(Matcher::new(&self.grammar)));
        let matcher = self.matcher.insert(matcher);
        let rest = tokens.get(self.taken.len()..).unwrap_or_default();
        let legal = matcher.accept(rest)?;
        self.taken.extend(rest.iter().take(legal));
        if legal < rest.len() {
            let text = "a token that was given to the session is not allowed by its grammar; call `constrain` \
                        without a grammar before tokens that are not part of the text";
            return Err(Error::Constraint(text.into()));
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
    /// Time that it took.
    pub(super) took: Duration,
}

/// A job, and where to tell what was found out.
type Order = (Job, Sender<News>);

/// The threads. They end with it.
pub(super) struct Workers {
    jobs: Sender<Order>,
    queue: Arc<Mutex<Receiver<Order>>>,
    threads: usize,
}

impl Workers {
    pub(super) fn new() -> Self {
        let (jobs, queue) = channel();
        Self { jobs, queue: Arc::new(Mutex::new(queue)), threads: 0 }
    }

    /// Hands over a job, or gives its matcher back where there is no thread for it.
    pub(super) fn send(&mut self, job: Job) -> Result<Receiver<News>, Feed> {
        // Started when they are needed: most models never see a grammar.
        while self.threads < MOST {
            let queue = Arc::clone(&self.queue);
            let thread = std::thread::Builder::new().name("grammar".into());
            if let Err(error) = thread.spawn(move || work(&queue)) {
                tracing::warn!(%error, "no further thread for grammars");
                break;
            }
            self.threads += 1;
        }
        if self.threads == 0 {
            return Err(job.feed);
        }
        let (news, heard) = channel();
        match self.jobs.send((job, news)) {
            Ok(()) => Ok(heard),
            Err(unsent) => Err(unsent.0.0.feed),
        }
    }
}

fn work(queue: &Mutex<Receiver<Order>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((job, news)) = next else { return };
        // Should the grammar library panic, the channel closes, which says so.
        if std::panic::catch_unwind(AssertUnwindSafe(|| find_out(job, &news))).is_err() {
            tracing::error!("following a grammar panicked; its run ends with an error");
        }
    }
}

/// Nobody may listen any more: then there is nothing to be done about it.
fn find_out(job: Job, news: &Sender<News>) {
    let begin = Instant::now();
    let Job { mut feed, tokens, jump } = job;
    let mask = follow(&mut feed, &tokens, jump, news);
    let took = begin.elapsed();
    let _ = news.send(News::Found(Found { feed, mask, took }));
}

fn follow(feed: &mut Feed, tokens: &[Token], jump: Jump, news: &Sender<News>) -> Result<TokenMask, Error> {
    let matcher = feed.go_to(tokens)?;
    let mut forced = match jump {
        Jump::Ahead => matcher.forced(),
        Jump::Never => Vec::new(),
    };
    let legal = matcher.accept(&forced)?;
    forced.truncate(legal);
    let ends = if matcher.is_done() { Ends::Here } else { Ends::Open };
    let mask = match news.send(News::Forced(forced.clone(), ends)) {
        Ok(()) => matcher.mask().cloned(),
        Err(_) => Err(Error::Cancelled),
    };
    feed.taken.extend(forced);
    mask
}
