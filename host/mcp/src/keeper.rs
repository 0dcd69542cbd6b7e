//! Programs that are servers, started by a process of its own.
//!
//! The host gives up the right to start programs before it serves, and a program that it
//! started later would have no more rights than it has itself. So a keeper is started
//! before: it knows the programs of the manifest and starts those, and nothing else, as
//! often as the host asks. Each program's standard input and output is one end of a pair
//! of sockets; the other end goes to the host (`unix(7)`, `SCM_RIGHTS`), with the end of
//! another pair that only tells the keeper when the host has let go of both. A program
//! that does not end then is made to.
//!
//! The keeper ends when the host does, and with it the programs.

mod bounded;
mod child;
mod pass;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::io::{ReadHalf, WriteHalf};

use bounded::Bounded;
use child::Started;

/// A program, as a manifest has it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The server's name in the manifest, for logs.
    pub name: String,
    /// The program: a path, or a name that is looked for in `PATH`.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment, beside the few variables that any program has.
    pub environment: BTreeMap<String, String>,
    /// Where it runs.
    pub folder: PathBuf,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").field("name", &self.name).field("command", &self.command).finish_non_exhaustive()
    }
}

/// Programs that a keeper may know: they are told apart by a byte.
pub const MOST_PROGRAMS: usize = 255;

/// The longest description of all programs, in bytes.
const LONGEST: usize = 16 << 20;

/// The longest reason for which a program cannot be started, in bytes.
const LONGEST_REASON: usize = 1024;

/// A keeper, as the host sees it.
#[derive(Debug)]
pub struct Keeper {
    socket: Arc<Mutex<UnixStream>>,
}

impl Keeper {
    /// Starts a keeper: a program that calls [`keep`]. To be called before the right to
    /// start programs is given up.
    ///
    /// # Errors
    /// The program cannot be started, or there are more than [`MOST_PROGRAMS`].
    #[allow(clippy::zombie_processes, reason = "it ends after this process, or this process ends for want of it")]
    pub fn spawn(mut program: Command, programs: &[Known]) -> io::Result<Self> {
        if programs.len() > MOST_PROGRAMS {
            let text = format!("{} programs are named; at most {MOST_PROGRAMS} can be", programs.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let (mut socket, theirs) = UnixStream::pair()?;
        // In a group of its own: a signal from the terminal is the host's alone to act on.
        program.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).process_group(0);
        program.spawn()?;
        drop(program);
        let known = serde_json::to_vec(programs)?;
        let length = u32::try_from(known.len()).map_err(io::Error::other)?;
        socket.write_all(&length.to_le_bytes())?;
        socket.write_all(&known)?;
        Ok(Self { socket: Arc::new(Mutex::new(socket)) })
    }

    /// Starts a program.
    ///
    /// # Errors
    /// It cannot be started, or the keeper is gone.
    pub(crate) async fn start(&self, index: u8) -> io::Result<Pipe> {
        let socket = Arc::clone(&self.socket);
        let started = tokio::task::spawn_blocking(move || {
            let mut socket = socket.lock().unwrap_or_else(PoisonError::into_inner);
            socket.write_all(&[index])?;
            match pass::receive(&*socket)? {
                pass::Received::Open { stream, life } => Ok((stream, life)),
                pass::Received::Refused => {
                    let mut length = [0; 2];
                    socket.read_exact(&mut length)?;
                    let mut reason = vec![0; usize::from(u16::from_le_bytes(length))];
                    socket.read_exact(&mut reason)?;
                    Err(io::Error::other(String::from_utf8_lossy(&reason).into_owned()))
                }
            }
        });
        let (stream, life) = started.await.map_err(io::Error::other)??;
        let stream = UnixStream::from(stream);
        stream.set_nonblocking(true)?;
        Ok(Pipe { stream: tokio::net::UnixStream::from_std(stream)?, life: Arc::new(life) })
    }
}

/// A program's standard input and output.
pub(crate) struct Pipe {
    stream: tokio::net::UnixStream,
    life: Arc<OwnedFd>,
}

impl Pipe {
    /// Both, as long as no line is longer than so many bytes.
    pub(crate) fn into_split(
        self,
        longest: usize,
    ) -> (Bounded<ReadHalf<tokio::net::UnixStream>>, WriteHalf<tokio::net::UnixStream>) {
        let (read, write) = tokio::io::split(self.stream);
        (Bounded::new(read, longest, self.life), write)
    }
}

/// The work of a keeper. Returns when the host is gone.
///
/// # Errors
/// Standard input is not what [`Keeper::spawn`] makes it.
pub fn keep() -> io::Result<()> {
    let mut host = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let programs = programs(&mut host)?;
    let mut started = Vec::new();
    let result = serve(&mut host, &programs, &mut started);
    started.iter().for_each(Started::give_up);
    started.into_iter().for_each(Started::wait);
    result
}

/// Starts what the host asks for, until it is gone.
fn serve(host: &mut UnixStream, programs: &[Known], started: &mut Vec<Started>) -> io::Result<()> {
    let mut index = [0];
    loop {
        match host.read(&mut index) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        started.retain(|one| !one.is_over());
        let [at] = index;
        let unknown = || io::Error::new(io::ErrorKind::NotFound, "the keeper knows no such program");
        match programs.get(usize::from(at)).ok_or_else(unknown).and_then(child::start) {
            Ok((open, one)) => {
                started.push(one);
                pass::send(&*host, &open)?;
            }
            Err(error) => refuse(host, &error)?,
        }
    }
}

fn programs(host: &mut UnixStream) -> io::Result<Vec<Known>> {
    let mut length = [0; 4];
    host.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the programs are described at too great a length"));
    }
    let mut known = vec![0; length];
    host.read_exact(&mut known)?;
    Ok(serde_json::from_slice(&known)?)
}

fn refuse(host: &mut UnixStream, error: &io::Error) -> io::Result<()> {
    let mut reason = error.to_string();
    reason.truncate(reason.floor_char_boundary(LONGEST_REASON));
    let length = u16::try_from(reason.len()).unwrap_or(u16::MAX);
    pass::send_refusal(&*host)?;
    host.write_all(&length.to_le_bytes())?;
    host.write_all(reason.as_bytes())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// This test binary as a keeper: the test below is the keeper's `main` where the
    /// variable is set.
    const AS_KEEPER: &str = "NALA_TEST_KEEPER";

    fn known(name: &str, command: &str, arguments: &[&str]) -> Known {
        Known {
            name: name.to_owned(),
            command: command.to_owned(),
            arguments: arguments.iter().map(|one| (*one).to_owned()).collect(),
            environment: BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]),
            folder: std::env::temp_dir(),
        }
    }

    #[test]
    fn the_keeper() {
        if std::env::var_os(AS_KEEPER).is_some() {
            keep().unwrap();
            std::process::exit(0);
        }
    }

    fn keeper(programs: &[Known]) -> Keeper {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "keeper::tests::the_keeper", "--nocapture"]).env(AS_KEEPER, "1");
        Keeper::spawn(command, programs).unwrap()
    }

    /// Whether a process is there, and no zombie.
    fn lives(pid: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z")
    }

    async fn gone(pid: u32) {
        for _ in 0..400 {
            if !lives(pid) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{pid} lives on");
    }

    /// Reads the first line, which is a number.
    async fn number(read: &mut (impl tokio::io::AsyncRead + Unpin)) -> u32 {
        let mut line = String::new();
        loop {
            match read.read_u8().await.unwrap() {
                b'\n' => return line.trim().parse().unwrap(),
                byte => line.push(char::from(byte)),
            }
        }
    }

    #[tokio::test]
    async fn programs_are_started_spoken_with_and_ended() {
        let echo = known("echo", "sh", &["-c", "echo $$; echo \"$GREETING\"; exec cat"]);
        let stubborn = known("stubborn", "sh", &["-c", "trap '' TERM; echo $$; while true; do sleep 0.1; done"]);
        let secret = known("secret", "sh", &["-c", "echo $$; env"]);
        let missing = known("missing", "/no/such/program", &[]);
        let keeper = keeper(&[echo, stubborn, secret, missing]);
        let (mut read, mut write) = keeper.start(0).await.unwrap().into_split(1 << 10);
        let pid = number(&mut read).await;
        write.write_all(b"there\n").await.unwrap();
        let mut told = [0; 12];
        read.read_exact(&mut told).await.unwrap();
        assert_eq!(&told, b"hello\nthere\n");
        // Two of one program at a time are two processes.
        let (mut other, _write) = keeper.start(0).await.unwrap().into_split(1 << 10);
        let second = number(&mut other).await;
        assert!(pid != second && lives(pid) && lives(second));
        drop((read, write));
        gone(pid).await;
        assert!(lives(second));
        let (mut read, write) = keeper.start(1).await.unwrap().into_split(1 << 10);
        let stubborn = number(&mut read).await;
        drop((read, write));
        gone(stubborn).await;
        // Nothing of this process's environment but the usual.
        let (mut read, _write) = keeper.start(2).await.unwrap().into_split(1 << 20);
        number(&mut read).await;
        let mut environment = String::new();
        read.read_to_string(&mut environment).await.unwrap();
        assert!(environment.contains("GREETING=hello") && environment.contains("PATH="), "{environment}");
        assert!(!environment.contains(AS_KEEPER), "{environment}");
        let error = keeper.start(3).await.err().unwrap().to_string();
        assert!(error.contains("/no/such/program"), "{error}");
        assert!(keeper.start(9).await.is_err());
        // With the keeper goes what is left.
        drop(keeper);
        gone(second).await;
    }

    #[tokio::test]
    async fn a_line_without_end_is_an_error() {
        let keeper = keeper(&[known("long", "sh", &["-c", "echo short; yes | tr -d '\\n'"])]);
        let (mut read, _write) = keeper.start(0).await.unwrap().into_split(1 << 16);
        let mut all = Vec::new();
        let error = read.read_to_end(&mut all).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(all.len() <= (1 << 16) + 6, "{}", all.len());
    }
}
