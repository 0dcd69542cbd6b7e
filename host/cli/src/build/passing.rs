//! What commands say, passed on line by line behind the name of the component.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::console::Console;

/// The longest part of a line that is held at a time, in bytes.
const MAX_LINE: u64 = 64 << 10;
/// How long it is read on when the command has ended: what it left behind in the
/// background may hold the pipes for ever.
const REST: Duration = Duration::from_secs(1);

/// Where something was said.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stream {
    Output,
    Errors,
}

/// The threads that pass on.
pub(super) struct Passing {
    running: usize,
    ended: (Sender<()>, Receiver<()>),
}

impl Default for Passing {
    fn default() -> Self {
        Self { running: 0, ended: channel() }
    }
}

impl Passing {
    /// Passes on what comes from `source`.
    pub(super) fn add(&mut self, id: &str, source: Option<impl Read + Send + 'static>, to: Stream, console: Console) {
        let Some(source) = source else { return };
        let (id, ended) = (id.to_owned(), self.ended.0.clone());
        self.running += 1;
        std::thread::spawn(move || {
            pass(&id, source, |line| write(line, to, console));
            // Nobody may wait for it any more.
            let _late = ended.send(());
        });
    }

    /// Waits until all is passed on, but not for what stays behind.
    pub(super) fn finish(self) {
        let end = Instant::now() + REST;
        for _ in 0..self.running {
            if self.ended.1.recv_timeout(end.saturating_duration_since(Instant::now())).is_err() {
                return;
            }
        }
    }
}

fn pass(id: &str, source: impl Read, mut write: impl FnMut(&[u8])) {
    let mut source = BufReader::new(source);
    loop {
        let mut line = format!("[{id}] ").into_bytes();
        let name = line.len();
        match source.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(read) if read > 0 => {}
            _ => return,
        }
        while line.len() > name && matches!(line.last(), Some(b'\n' | b'\r')) {
            line.pop();
        }
        write(&line);
    }
}

/// Nobody is left to tell if a line cannot be written; the command goes on.
fn write(line: &[u8], to: Stream, console: Console) {
    if console == Console::Json {
        return console.say(&String::from_utf8_lossy(line));
    }
    let line = [line, b"\n"].concat();
    let _closed = match to {
        Stream::Output => std::io::stdout().lock().write_all(&line),
        Stream::Errors => std::io::stderr().lock().write_all(&line),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_the_name_before_it_and_none_is_held_whole() {
        let mut passed = Vec::new();
        let long = "x".repeat(MAX_LINE as usize + 5);
        pass("api", format!("one\r\n\n\u{1b}[31mtwo\n{long}").as_bytes(), |line| {
            passed.push(String::from_utf8(line.to_vec()).unwrap());
        });
        assert_eq!(passed[..3], ["[api] one", "[api] ", "[api] \u{1b}[31mtwo"]);
        assert_eq!((passed.len(), passed[4].as_str()), (5, "[api] xxxxx"));
    }
}
