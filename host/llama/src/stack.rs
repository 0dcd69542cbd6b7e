//! Room on the stack for tokenising long texts.
//!
//! For most vocabularies llama.cpp splits text with `std::regex`, which calls
//! itself once a character of a match: a long word overflows an ordinary stack,
//! and that ends the process. Long texts are therefore tokenised on a thread
//! with a stack of their size. The pages of it that stay unused cost nothing.

use std::thread;

use nala_machine::{note_lent, worked};

/// Texts up to so many bytes need no thread of their own: even in the smallest
/// usual stack (2 MiB) there is room for them.
const SHORT: usize = 1024;
/// Stack that one byte of text may take.
const BYTES_A_BYTE: usize = 1024;
/// Stack for everything else.
const BASE: usize = 4 << 20;

/// Runs `work` on a stack with room for a text of `bytes`. What it takes counts for the
/// calling thread.
///
/// # Errors
/// A text for people, where the system refuses such a thread.
pub(crate) fn with_room_for<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    if bytes <= SHORT {
        return Ok(work());
    }
    let size = BASE.saturating_add(bytes.saturating_mul(BYTES_A_BYTE));
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("tokenise".to_owned())
            .stack_size(size)
            .spawn_scoped(scope, || (work(), worked()))
            .map_err(|error| format!("no thread to tokenise {bytes} bytes of text: {error}"))?;
        let (result, used) = thread.join().map_err(|_| "tokenising the text failed".to_owned())?;
        note_lent(used);
        Ok(result)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_it_takes_counts_for_the_calling_thread() {
        let time = Duration::from_millis(50);
        for bytes in [SHORT, SHORT + 1] {
            let begin = worked();
            let work = || {
                let begin = worked();
                while worked() - begin < time {}
            };
            with_room_for(bytes, work).unwrap();
            assert!(worked() - begin >= time, "{bytes}");
        }
    }
}
