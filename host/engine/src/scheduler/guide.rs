//! What keeps a session within a grammar.
//!
//! Following a grammar can be slow, and slow on purpose, so it never happens on the
//! engine thread: what a run has said goes to a [`Workers`] thread, and while the
//! batch is decoded the thread finds out what may come next. A run whose answer is
//! late sits out; the batch does not wait for it but a moment.
//!
//! A guide knows its grammar and where in the session it began; how far along it is
//! follows from the tokens. So a session that is forked, rewound, saved or given
//! tokens needs nothing special: the matcher goes back to what it has in common with
//! the session and takes in the rest.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::Duration;

use super::workers::{Errand, Feed, Found, Job, News, Workers, too_much};
use crate::Token;
use crate::constraint::{Grammar, TokenMask};
use crate::error::Error;

/// Time that following a grammar may take at once, beyond which it must have come
/// together over the tokens.
const CREDIT: Duration = Duration::from_secs(2);
/// Time that each token adds.
const CREDIT_A_TOKEN: Duration = Duration::from_millis(20);

/// A session's way through a grammar.
pub(super) struct Guide {
    grammar: Grammar,
    /// How many tokens the session held when it began.
    since: usize,
    state: State,
    /// What is known of the next token.
    next: Next,
    /// Time left, see [`CREDIT`].
    credit: Duration,
}

enum State {
    /// To be started from the grammar's beginning.
    Fresh,
    /// At hand.
    Here(Feed),
    /// With a worker.
    Away(Errand),
}

/// What is known of what may come next.
enum Next {
    /// Nobody was asked.
    Unasked,
    /// A worker was asked; the session held so many tokens.
    Asked(usize),
    /// Tokens that must come were told; the mask after them was not yet.
    Mask,
    /// All of it.
    Known(TokenMask),
    /// A worker is on an errand that is no longer wanted. There is one at a time for
    /// a guide, however often its session changes.
    CalledOff,
    /// There is no worker.
    Unserved,
}

/// What a guide has to say.
pub(super) enum Word {
    /// Nothing yet.
    Silence,
    /// These tokens come next without a choice. With it, whether nothing may come
    /// after them.
    Forced(Vec<Token>, Ends),
    /// The mask of the next token is there.
    Ready,
    /// The grammar was left or is too much work.
    Fails(Error),
}

/// Whether a grammar allows anything more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// More may come.
    Open,
    /// Nothing but the end.
    Here,
}

impl Guide {
    /// A guide from the end of a session of `since` tokens on.
    pub(super) fn new(grammar: Grammar, since: usize) -> Self {
        Self { grammar, since, state: State::Fresh, next: Next::Unasked, credit: CREDIT }
    }

    /// One for a session that holds the same.
    pub(super) fn twin(&self) -> Self {
        Self { credit: self.credit, ..Self::new(self.grammar.clone(), self.since) }
    }

    /// What is followed.
    pub(super) fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// Where it began.
    pub(super) fn since(&self) -> usize {
        self.since
    }

    /// Notes that the session was shortened.
    pub(super) fn rewound(&mut self, to: usize) {
        self.since = self.since.min(to);
        self.outdated();
    }

    /// Notes that tokens before its beginning were taken out.
    pub(super) fn moved_up(&mut self, count: usize) {
        self.since = self.since.saturating_sub(count);
        self.outdated();
    }

    /// Has a worker find out what may come after `tokens`, the session's, for a
    /// tenant.
    pub(super) fn ask(&mut self, tokens: &[Token], jump: Jump, tenant: &Arc<str>, workers: &mut Workers) {
        if let State::Away(errand) = &self.state {
            errand.call_off();
            self.next = Next::CalledOff;
            return;
        }
        let feed = match std::mem::replace(&mut self.state, State::Fresh) {
            State::Here(feed) => feed,
            State::Fresh | State::Away(_) => Feed::new(&self.grammar),
        };
        let own = tokens.get(self.since..).unwrap_or_default();
        let (tenant, time) = (Arc::clone(tenant), self.credit);
        match workers.send(Job { feed, tokens: own.to_vec(), jump, tenant, time }) {
            Ok(errand) => {
                self.state = State::Away(errand);
                self.next = Next::Asked(tokens.len());
            }
            Err(feed) => {
                self.state = State::Here(feed);
                self.next = Next::Unserved;
            }
        }
    }

    /// Whether a worker is to be asked: nothing is known of what comes next.
    pub(super) fn is_unasked(&self) -> bool {
        matches!(self.next, Next::Unasked)
    }

    /// Whether tokens may be decoded: it is known whether more of them must come.
    pub(super) fn lets_decode(&self) -> bool {
        matches!(self.next, Next::Mask | Next::Known(_))
    }

    /// Whether work has to wait for a word, where its tokens are computed or are not.
    pub(super) fn is_awaited(&self, is_computed: bool) -> bool {
        match &self.next {
            Next::Unasked | Next::Asked(_) | Next::CalledOff | Next::Unserved => true,
            Next::Mask | Next::Known(_) => is_computed,
        }
    }

    /// What there is to say about a session that holds `held` tokens, waiting for
    /// it up to `patience`.
    pub(super) fn listen(&mut self, held: usize, patience: Duration) -> Word {
        match &self.next {
            Next::Unasked => return Word::Silence,
            Next::Known(_) => return Word::Ready,
            Next::Unserved => {
                self.next = Next::Unasked;
                return Word::Fails(Error::Busy);
            }
            Next::Asked(_) | Next::Mask | Next::CalledOff => {}
        }
        let State::Away(Errand { news, .. }) = &self.state else {
            self.next = Next::Unasked;
            return Word::Silence;
        };
        let word = match news.try_recv() {
            Err(TryRecvError::Empty) if !patience.is_zero() => news.recv_timeout(patience),
            Err(TryRecvError::Empty) => Err(RecvTimeoutError::Timeout),
            Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
            Ok(word) => Ok(word),
        };
        match word {
            Err(RecvTimeoutError::Timeout) => Word::Silence,
            Err(RecvTimeoutError::Disconnected) => {
                self.state = State::Fresh;
                self.next = Next::Unasked;
                Word::Fails(Error::Constraint("following this grammar failed unexpectedly".into()))
            }
            Ok(News::Forced(tokens, ends)) if matches!(self.next, Next::Asked(at) if at == held) => {
                self.next = Next::Mask;
                Word::Forced(tokens, ends)
            }
            // The session was given tokens in the meantime, or has changed.
            Ok(News::Forced(..)) => {
                self.next = Next::CalledOff;
                Word::Silence
            }
            Ok(News::Found(found)) => self.found(found),
        }
    }

    /// The worker is back.
    fn found(&mut self, found: Found) -> Word {
        let Found { feed, mask, took } = found;
        self.state = State::Here(feed);
        let credit = (self.credit + CREDIT_A_TOKEN).min(CREDIT).checked_sub(took);
        self.credit = credit.unwrap_or_default();
        let was = std::mem::replace(&mut self.next, Next::Unasked);
        match (was, mask, credit) {
            (Next::CalledOff, ..) => Word::Silence,
            (_, Err(error), _) => Word::Fails(error),
            (_, Ok(_), None) => Word::Fails(too_much()),
            (_, Ok(mask), Some(_)) => {
                self.next = Next::Known(mask);
                Word::Ready
            }
        }
    }

    /// The mask of the next token, once it is known.
    pub(super) fn mask(&self) -> Option<&TokenMask> {
        match &self.next {
            Next::Known(mask) => Some(mask),
            _ => None,
        }
    }

    /// Notes that the session has changed: what is known, or being found out, is of
    /// no more use.
    pub(super) fn outdated(&mut self) {
        self.next = match &self.state {
            State::Away(errand) => {
                errand.call_off();
                Next::CalledOff
            }
            State::Fresh | State::Here(_) => Next::Unasked,
        };
    }
}

/// Whether tokens that must come are taken without being sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Jump {
    /// They are.
    Ahead,
    /// Each token is sampled, though there may be no choice.
    Never,
}
