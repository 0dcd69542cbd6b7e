//! How a run's end becomes the end of an iterator.

use super::{Chunk, Error, Finish};

/// What is still to come of a run.
#[derive(Debug, Default)]
pub(super) enum Ending {
    /// Chunks.
    #[default]
    Open,
    /// Only the error that it was cut short with.
    Owed(Error),
    /// Nothing.
    Done,
}

impl Ending {
    /// The next item, where `fetch` asks the host for a chunk.
    pub(super) fn next(
        &mut self,
        fetch: impl FnOnce() -> Result<Option<Chunk>, Error>,
    ) -> Option<Result<Chunk, Error>> {
        match std::mem::replace(self, Self::Done) {
            Self::Open => {}
            Self::Owed(error) => return Some(Err(error)),
            Self::Done => return None,
        }
        match fetch() {
            Ok(Some(chunk)) => {
                *self = match chunk.finish {
                    None => Self::Open,
                    Some(finish) => cut_short(finish).map_or(Self::Done, Self::Owed),
                };
                Some(Ok(chunk))
            }
            Ok(None) => Some(Err(Error::Backend("the generation broke off".to_owned()))),
            Err(error) => Some(Err(error)),
        }
    }
}

/// The error that a run ends with which neither the model nor a limit of its
/// text ended.
fn cut_short(finish: Finish) -> Option<Error> {
    match finish {
        Finish::StopToken | Finish::StopText(_) | Finish::Length | Finish::ContextFull | Finish::ConstraintDone => None,
        Finish::Deadline => Some(Error::Deadline),
        Finish::Cancelled => Some(Error::Cancelled),
        Finish::Preempted => Some(Error::Evicted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(text: &str, finish: Option<Finish>) -> Chunk {
        Chunk { tokens: Vec::new(), text: text.to_owned(), finish }
    }

    /// All that an iterator over these chunks of the host gives.
    fn all(chunks: Vec<Result<Option<Chunk>, Error>>) -> Vec<Result<Chunk, Error>> {
        let mut chunks = chunks.into_iter();
        let mut ending = Ending::default();
        // Asked on after its end, the host says `None`.
        std::iter::from_fn(|| ending.next(|| chunks.next().unwrap_or(Ok(None)))).collect()
    }

    #[test]
    fn a_proper_end_is_the_last_chunk() {
        for finish in
            [Finish::StopToken, Finish::StopText(1), Finish::Length, Finish::ContextFull, Finish::ConstraintDone]
        {
            let (first, last) = (chunk("a", None), chunk("b", Some(finish)));
            assert_eq!(all(vec![Ok(Some(first.clone())), Ok(Some(last.clone()))]), [Ok(first), Ok(last)]);
        }
    }

    #[test]
    fn a_run_that_is_cut_short_ends_with_an_error_behind_its_last_text() {
        for (finish, error) in [
            (Finish::Preempted, Error::Evicted),
            (Finish::Deadline, Error::Deadline),
            (Finish::Cancelled, Error::Cancelled),
        ] {
            let last = chunk("half an ans", Some(finish));
            assert_eq!(all(vec![Ok(Some(last.clone()))]), [Ok(last), Err(error)]);
        }
    }

    #[test]
    fn an_end_without_a_reason_is_an_error() {
        let first = chunk("a", None);
        let broke = Error::Backend("the generation broke off".to_owned());
        assert_eq!(all(vec![Ok(Some(first.clone()))]), [Ok(first.clone()), Err(broke)]);
        assert_eq!(all(vec![Ok(Some(first.clone())), Err(Error::Busy)]), [Ok(first), Err(Error::Busy)]);
    }
}
