//! A call that goes on, between the tool and whoever waits for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::asked;
use super::bindings::nala::tools::types::{Abilities, Entry, Error, Progress, Question, Refusal};
use super::job::Said;
use crate::account::Holding;
use crate::body::GoneGuard;
use crate::control::RequestControl;

/// What a call came to.
pub(crate) type Outcome = Result<Said, Error>;

/// What is to be told next.
pub(super) enum Next {
    Progress(Progress),
    Log(Entry),
    Ask(Vec<Question>),
    Answer(Outcome),
    /// All has been told.
    Nothing,
}

/// An answer that was not told yet, and the room that it takes.
pub(super) struct Kept {
    pub(super) outcome: Outcome,
    pub(super) _held: Option<Holding>,
}

/// The longest message that is told of a call's progress, in bytes.
const LONGEST_MESSAGE: usize = 4096;

/// The bytes of a log that wait for a caller that is behind. A line that is longer is cut.
const MOST_LOG: usize = 64 << 10;
/// What all of it takes that is said while a call goes on: the log, questions and a report.
pub(super) const MOST_SAID: u64 = (MOST_LOG + asked::MOST_BYTES + LONGEST_MESSAGE) as u64;

/// What both sides share.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    changed: Notify,
    /// Room for what is said while the call goes on, however long that is kept.
    _talk: Option<Holding>,
}

#[derive(Default)]
struct State {
    /// The latest that was not told yet.
    progress: Option<Progress>,
    /// Lines of its log that were not told yet.
    log: VecDeque<Entry>,
    asked: Asked,
    answer: Option<Kept>,
    is_told: bool,
}

impl State {
    fn is_over(&self) -> bool {
        self.answer.is_some() || self.is_told
    }
}

/// How far questions have got.
#[derive(Default)]
enum Asked {
    #[default]
    Nothing,
    /// They were not told yet.
    New(Vec<Question>),
    /// So many were told and wait for replies.
    Told(usize),
    Replied(Result<Vec<String>, String>),
}

impl Shared {
    /// Changes what is to be told. Whether that is worth waking somebody.
    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        let is_news = change(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner));
        if is_news {
            self.0.changed.notify_waiters();
        }
    }

    /// Waits until `look` finds something.
    async fn wait<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let changed = self.0.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // What comes after the look is not missed.
            changed.as_mut().enable();
            let found = look(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner));
            match found {
                Some(found) => return found,
                None => changed.await,
            }
        }
    }

    /// Waits until there is something to be told.
    pub(super) async fn ready(&self) {
        let is_ready = |state: &mut State| {
            let is_asked = matches!(state.asked, Asked::New(_));
            state.is_over() || state.progress.is_some() || !state.log.is_empty() || is_asked
        };
        self.wait(|state| is_ready(state).then_some(())).await;
    }
}

/// A call, for whoever waits for it. It ends when this is dropped.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct Running {
    shared: Shared,
    _guard: GoneGuard,
}

impl Drop for Running {
    /// Nobody is told anything any more, nor replies.
    fn drop(&mut self) {
        self.shared.change(|state| !std::mem::replace(&mut state.is_told, true));
    }
}

impl Running {
    /// A call, and where the tool's side of it tells what comes of it.
    pub(super) fn begin(control: Arc<RequestControl>, abilities: Abilities, talk: Option<Holding>) -> (Self, Listener) {
        let shared = Shared(Arc::new(Inner { _talk: talk, ..Inner::default() }));
        (Self { shared: shared.clone(), _guard: GoneGuard::new(control) }, Listener { shared, abilities })
    }

    pub(super) fn shared(&self) -> Shared {
        self.shared.clone()
    }

    /// Waits for what is to be told next.
    pub(super) async fn next(&self) -> Next {
        self.shared
            .wait(|state| {
                if let Some(progress) = state.progress.take() {
                    return Some(Next::Progress(progress));
                }
                if let Some(entry) = state.log.pop_front() {
                    return Some(Next::Log(entry));
                }
                if let Asked::New(questions) = &mut state.asked {
                    let questions = std::mem::take(questions);
                    state.asked = Asked::Told(questions.len());
                    return Some(Next::Ask(questions));
                }
                if let Some(kept) = state.answer.take() {
                    state.is_told = true;
                    return Some(Next::Answer(kept.outcome));
                }
                state.is_told.then_some(Next::Nothing)
            })
            .await
    }

    /// Replies to what was asked. False: that does not answer it.
    pub(super) fn reply(&self, mut replies: Result<Vec<String>, String>) -> bool {
        let is_object = |reply: &String| asked::is_object(reply);
        if let Err(why) = &mut replies {
            cut(why, LONGEST_MESSAGE);
        }
        let mut fits = false;
        self.shared.change(|state| {
            fits = match (&state.asked, &replies) {
                (Asked::Told(wanted), Ok(replies)) => *wanted == replies.len() && replies.iter().all(is_object),
                (Asked::Told(_), Err(_)) => true,
                (Asked::Nothing | Asked::New(_) | Asked::Replied(_), _) => false,
            };
            if fits {
                state.asked = Asked::Replied(replies);
            }
            fits
        });
        fits
    }

    /// Waits for the answer, whatever is told before. What a tool reports wakes nobody more
    /// than once.
    pub(super) async fn answer(&self) -> Outcome {
        let kept = self.shared.wait(|state| state.answer.take()).await;
        kept.outcome
    }
}

/// Where a tool tells what comes of a call.
pub(crate) struct Listener {
    shared: Shared,
    abilities: Abilities,
}

impl Listener {
    /// Another way to tell the same one how far the call has got.
    pub(super) fn again(&self) -> Reporter {
        Reporter { shared: self.shared.clone(), abilities: self.abilities }
    }

    /// Ends the call.
    pub(super) fn answer(self, outcome: Outcome, held: Option<Holding>) {
        self.shared.change(|state| {
            state.answer = Some(Kept { outcome, _held: held });
            true
        });
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.change(|state| {
            let is_over = state.is_over();
            if !is_over {
                let outcome = Err(Error::Failed("the call was given up".into()));
                state.answer = Some(Kept { outcome, _held: None });
            }
            !is_over
        });
    }
}

/// What a tool says to whoever called it.
#[derive(Clone)]
pub(crate) struct Reporter {
    shared: Shared,
    abilities: Abilities,
}

impl Reporter {
    pub(super) fn report(&self, mut progress: Progress) {
        if let Some(message) = &mut progress.message {
            cut(message, LONGEST_MESSAGE);
        }
        self.shared.change(|state| if state.is_over() { false } else { state.progress.replace(progress).is_none() });
    }

    pub(super) fn log(&self, mut entry: Entry) {
        if !self.abilities.contains(Abilities::HEAR_LOG) {
            return;
        }
        if let Some(logger) = &mut entry.logger {
            cut(logger, LONGEST_MESSAGE);
        }
        // What is no JSON, or too much of it, is a text.
        let most = MOST_LOG - LONGEST_MESSAGE;
        let is_json = entry.data.len() <= most && asked::is_json(&entry.data);
        if !is_json {
            // A character can take six when it is written as JSON.
            cut(&mut entry.data, most / 8);
            entry.data = serde_json::Value::String(entry.data).to_string();
        }
        self.shared.change(|state| {
            if state.is_over() {
                return false;
            }
            state.log.push_back(entry);
            let mut held: usize = state.log.iter().map(bytes).sum();
            while held > MOST_LOG && state.log.len() > 1 {
                held -= state.log.pop_front().as_ref().map_or(0, bytes);
            }
            state.log.len() == 1
        });
    }

    /// Asks, and waits for the replies.
    pub(super) async fn ask(&self, questions: Vec<Question>) -> Result<Vec<String>, Refusal> {
        asked::check(&questions, self.abilities)?;
        self.shared.change(|state| {
            state.asked = Asked::New(questions);
            !state.is_over()
        });
        let replies = self.shared.wait(|state| {
            if let Asked::Replied(replies) = &mut state.asked {
                return Some(std::mem::replace(replies, Ok(Vec::new())));
            }
            // Nobody replies any more.
            state.is_over().then(|| Err("the call is over".to_owned()))
        });
        let replies = replies.await;
        self.shared.change(|state| {
            state.asked = Asked::Nothing;
            false
        });
        replies.map_err(Refusal::Failed)
    }
}

/// What a line takes.
fn bytes(entry: &Entry) -> usize {
    size_of::<Entry>() + entry.data.len() + entry.logger.as_ref().map_or(0, String::len)
}

fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use tokio::runtime::Handle;

    use super::super::bindings::nala::tools::types::{Inquiry, Severity};
    use super::*;
    use crate::outbound::Origin;

    fn begin() -> (Running, Listener, Arc<RequestControl>) {
        let control = Arc::new(RequestControl::of_call(
            Instant::now() + Duration::from_secs(60),
            Origin::client(Handle::current()),
        ));
        let (running, listener) = Running::begin(Arc::clone(&control), Abilities::all(), None);
        (running, listener, control)
    }

    fn progress(done: f64) -> Progress {
        Progress { done, total: None, message: None }
    }

    #[tokio::test]
    async fn the_latest_progress_is_told_before_the_answer_and_then_nothing() {
        let (running, listener, _) = begin();
        let reporter = listener.again();
        reporter.report(progress(1.0));
        reporter.report(progress(2.0));
        listener.answer(Err(Error::Busy("full".into())), None);
        reporter.report(progress(3.0));
        running.shared().ready().await;
        assert!(matches!(running.next().await, Next::Progress(Progress { done: 2.0, .. })));
        assert!(matches!(running.next().await, Next::Answer(Err(Error::Busy(_)))));
        running.shared().ready().await;
        assert!(matches!(running.next().await, Next::Nothing));
    }

    #[tokio::test]
    async fn who_waits_is_woken_wherever_it_waits() {
        let (running, listener, _) = begin();
        let shared = running.shared();
        let waits = tokio::spawn(async move { shared.ready().await });
        tokio::task::yield_now().await;
        let next = async { running.next().await };
        let tell = async {
            tokio::task::yield_now().await;
            drop(listener);
        };
        let (next, ()) = tokio::join!(next, tell);
        assert!(matches!(next, Next::Answer(Err(Error::Failed(_)))), "its task was dropped");
        tokio::time::timeout(Duration::from_secs(20), waits).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn who_waits_for_the_answer_is_woken_for_little_else() {
        let (running, listener, _) = begin();
        let reporter = listener.again();
        let mut polls = 0;
        let answer = running.answer();
        let mut answer = std::pin::pin!(answer);
        let counted = std::future::poll_fn(|cx| {
            polls += 1;
            answer.as_mut().poll(cx)
        });
        let tell = async {
            for n in 0..1000 {
                let message = Some("ß".repeat(10_000));
                reporter.report(Progress { message, ..progress(f64::from(n)) });
                tokio::task::yield_now().await;
            }
            let told = running.shared.0.state.lock().unwrap().progress.clone().unwrap().message.unwrap();
            assert_eq!(told.len(), LONGEST_MESSAGE);
            listener.answer(Err(Error::Busy("full".into())), None);
        };
        let (outcome, ()) = futures::join!(counted, tell);
        assert!(matches!(outcome, Err(Error::Busy(_))));
        assert!(polls < 1100, "{polls}: join polls both as often as it is polled itself");
    }

    #[tokio::test]
    async fn a_log_that_nobody_reads_has_an_end() {
        let (running, listener, _) = begin();
        let reporter = listener.again();
        let entry = |data: &str| Entry { severity: Severity::Info, logger: None, data: data.into() };
        for n in 0..10_000 {
            reporter.log(entry(&n.to_string()));
            reporter.log(entry(&"\0".repeat(100_000)));
        }
        reporter.log(entry("[1]"));
        let state = running.shared.0.state.lock().unwrap();
        assert!(state.log.iter().map(bytes).sum::<usize>() <= MOST_LOG && state.log.len() >= 2, "{}", state.log.len());
        assert_eq!(state.log.back().unwrap().data, "[1]");
    }

    #[tokio::test]
    async fn a_question_is_replied_to_once() {
        let (running, listener, _) = begin();
        let reporter = listener.again();
        assert!(!running.reply(Ok(vec![])), "nothing was asked");
        let question = || Question { key: "a".into(), kind: Inquiry::Roots, parameters: "{}".into() };
        let reply = async {
            let Next::Ask(asked) = running.next().await else { panic!("a question") };
            assert_eq!(asked.len(), 1);
            for wrong in [vec![], vec!["{}".into(), "{}".into()], vec!["[]".into()], vec!["{".into()]] {
                assert!(!running.reply(Ok(wrong)));
            }
            assert!(running.reply(Ok(vec!["{\"a\": 1}".into()])) && !running.reply(Ok(vec!["{}".into()])));
        };
        let (replies, ()) = tokio::join!(reporter.ask(vec![question()]), reply);
        assert_eq!(replies.unwrap(), ["{\"a\": 1}"]);
        let refuse = async {
            assert!(matches!(running.next().await, Next::Ask(_)));
            assert!(running.reply(Err("no".into())));
        };
        let (replies, ()) = tokio::join!(reporter.ask(vec![question()]), refuse);
        assert!(matches!(replies, Err(Refusal::Failed(why)) if why == "no"));
    }

    #[tokio::test]
    async fn a_call_that_nobody_waits_for_ends() {
        let (running, _listener, control) = begin();
        assert!(!control.gone.is_cancelled());
        drop(running);
        assert!(control.gone.is_cancelled());
    }
}
