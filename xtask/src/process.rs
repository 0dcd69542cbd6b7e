//! Running other programs, so that a person sees that something happens.

use std::io::{IsTerminal, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How often a running program is looked at.
const POLL: Duration = Duration::from_millis(50);
/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(100);
/// How long a program may be silent in a pipe before a line says it still runs.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// What takes less than this needs no progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// Says what is being done.
pub(crate) fn say(text: &str) {
    eprintln!("xtask: {text}");
}

/// Runs a program that reports its own progress, such as Cargo.
///
/// In a pipe, where such programs draw no progress bar, a line every 30 seconds
/// tells that it still runs.
///
/// # Errors
/// The program does not start or exits with anything but 0.
pub(crate) fn run(what: &str, command: &mut Command) -> Result<()> {
    say(what);
    let mut child = start(command)?;
    let status = wait(&mut child, what, &mut Heartbeat::new())?;
    check(command, status)
}

/// Runs a program that reports nothing useful, behind a spinner; its output is
/// shown only if it fails.
///
/// # Errors
/// The program does not start or exits with anything but 0.
pub(crate) fn run_quietly(what: &str, command: &mut Command) -> Result<()> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = start(command)?;
    // Both pipes are drained on threads, so that a full one cannot stop the child.
    let stdout = child.stdout.take().map(drain);
    let stderr = child.stderr.take().map(drain);
    let mut progress = Progress::new(what);
    let status = wait(&mut child, what, &mut progress);
    progress.finish();
    let status = status?;
    if !status.success() {
        for pipe in [stdout, stderr].into_iter().flatten() {
            let text = pipe.join().unwrap_or_default();
            eprint!("{}", String::from_utf8_lossy(&text));
        }
    }
    check(command, status)
}

/// Runs a program and returns what it printed, without its last line end.
///
/// # Errors
/// The program does not start, exits with anything but 0, or prints something
/// that is not UTF-8.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("`{}` did not start", show(command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({}): {}", show(command), output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something that is not UTF-8", show(command)))?;
    Ok(text.trim_end().to_owned())
}

/// Runs a program, passes its standard output on, and hands each line to
/// `line` as well.
///
/// # Errors
/// The program does not start. How it ends is the caller's to judge.
pub(crate) fn run_and_read(command: &mut Command, line: impl FnMut(&str) + Send) -> Result<ExitStatus> {
    command.stdout(Stdio::piped());
    let mut child = start(command)?;
    let Some(stdout) = child.stdout.take() else {
        bail!("`{}` has no standard output", show(command));
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || pass_on(stdout, line));
        let status = wait(&mut child, &show(command), &mut Heartbeat::new())?;
        if reader.join().is_err() {
            bail!("reading the output of `{}` failed", show(command));
        }
        Ok(status)
    })
}

/// A command as a person would type it.
pub(crate) fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn start(command: &mut Command) -> Result<Child> {
    command.spawn().with_context(|| format!("`{}` did not start: is it installed and on PATH?", show(command)))
}

fn check(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{}` failed ({status})", show(command));
    }
    Ok(())
}

fn drain(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read before an error is still worth showing.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// Copies what a program prints to our own standard output as it comes, and
/// hands over whole lines.
fn pass_on(mut pipe: impl Read, mut line: impl FnMut(&str)) {
    let mut buffer = [0; 8192];
    let mut pending = Vec::new();
    let mut out = std::io::stdout();
    while let Ok(count) = pipe.read(&mut buffer) {
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        // A closed standard output must not stop the tests.
        let _ = out.write_all(bytes).and_then(|()| out.flush());
        pending.extend_from_slice(bytes);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let whole: Vec<u8> = pending.drain(..=end).collect();
            line(String::from_utf8_lossy(&whole).trim_end());
        }
    }
    line(String::from_utf8_lossy(&pending).trim_end());
}

/// Told now and then that a program still runs.
trait Watch {
    fn tick(&mut self, what: &str, elapsed: Duration);
}

fn wait(child: &mut Child, what: &str, watch: &mut dyn Watch) -> Result<ExitStatus> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("waiting for a program failed")? {
            return Ok(status);
        }
        watch.tick(what, began.elapsed());
        std::thread::sleep(POLL);
    }
}

/// A line now and then, for programs that draw their progress on terminals only.
struct Heartbeat {
    next: Duration,
    terminal: bool,
}

impl Heartbeat {
    fn new() -> Self {
        Self { next: HEARTBEAT, terminal: std::io::stderr().is_terminal() }
    }
}

impl Watch for Heartbeat {
    fn tick(&mut self, what: &str, elapsed: Duration) {
        if !self.terminal && elapsed >= self.next {
            self.next = elapsed + HEARTBEAT;
            say(&format!("{what}: still running after {} s", elapsed.as_secs()));
        }
    }
}

/// Progress of something silent: a spinner on a terminal, lines in a pipe.
///
/// Nothing is shown for what ends within a second.
pub(crate) struct Progress {
    what: String,
    terminal: bool,
    next: Duration,
    turns: usize,
    began: Instant,
    shown: bool,
}

impl Progress {
    /// Begins to count the time.
    pub(crate) fn new(what: &str) -> Self {
        Self {
            what: what.to_owned(),
            terminal: std::io::stderr().is_terminal(),
            next: PATIENCE,
            turns: 0,
            began: Instant::now(),
            shown: false,
        }
    }

    /// Shows how far it is, if the last time was long enough ago.
    pub(crate) fn update(&mut self, detail: &str) {
        let elapsed = self.began.elapsed();
        if elapsed < self.next {
            return;
        }
        let what = &self.what;
        let seconds = elapsed.as_secs();
        let gap = if detail.is_empty() { "" } else { ", " };
        if self.terminal {
            let wheel = ['|', '/', '-', '\\'];
            let sign = wheel.get(self.turns % wheel.len()).unwrap_or(&'|');
            eprint!("\r\x1b[Kxtask: {sign} {what} ({seconds} s{gap}{detail})");
            // A progress line that cannot be drawn is not worth an error.
            let _ = std::io::stderr().flush();
            self.next = elapsed + TURN;
        } else {
            say(&format!("{what} ({seconds} s{gap}{detail})"));
            // The first line says that it began; the others that it lives.
            self.next = elapsed + HEARTBEAT / 3;
        }
        self.turns += 1;
        self.shown = true;
    }

    /// Takes the line away, or says in a pipe how long it took.
    pub(crate) fn finish(&mut self) {
        if !self.shown {
            return;
        }
        if self.terminal {
            eprint!("\r\x1b[K");
        }
        say(&format!("{} took {} s", self.what, self.began.elapsed().as_secs()));
    }
}

impl Watch for Progress {
    fn tick(&mut self, _what: &str, _elapsed: Duration) {
        self.update("");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_that_fails_is_an_error_that_names_it() {
        let error = run("test", &mut shell("exit 3")).unwrap_err().to_string();
        assert!(error.contains("sh -c exit 3") && error.contains('3'), "{error}");
        assert!(run_quietly("test", &mut shell("exit 1")).is_err());
        assert!(run_quietly("test", &mut shell("true")).is_ok());
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error_that_says_what_to_do() {
        let error = run("test", &mut Command::new("no-such-program")).unwrap_err().to_string();
        assert!(error.contains("is it installed"), "{error}");
    }

    #[test]
    fn more_output_than_a_pipe_holds_does_not_block() {
        run_quietly("test", &mut shell("head -c 1000000 /dev/zero")).unwrap();
    }

    #[test]
    fn lines_are_handed_over_whole_and_the_last_one_too() {
        let mut lines = Vec::new();
        let status = run_and_read(&mut shell("printf 'one\\ntwo'; exit 4"), |line| {
            lines.push(line.to_owned());
        })
        .unwrap();
        assert_eq!(lines, ["one", "two"]);
        assert_eq!(status.code(), Some(4));
    }

    #[test]
    fn captured_output_has_no_line_end() {
        assert_eq!(capture(&mut shell("echo hello")).unwrap(), "hello");
        assert!(capture(&mut shell("echo why >&2; false")).unwrap_err().to_string().contains("why"));
    }
}
