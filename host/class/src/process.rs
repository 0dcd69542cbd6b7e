//! A class's process, as the front sees it.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::keeper::Keeper;
use crate::pass;

/// How long a process may take to take a connection: longer than any that works.
const PATIENCE: Duration = Duration::from_secs(5);

/// The process is not there, or takes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the process is not there; it is started again")]
pub struct Away;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Requests of tenants.
    Requests,
    /// What the operator asks.
    Operator,
}

impl Door {
    fn label(self) -> u8 {
        match self {
            Self::Requests => b'r',
            Self::Operator => b'o',
        }
    }

    pub(crate) fn of(label: u8) -> Option<Self> {
        [Self::Requests, Self::Operator].into_iter().find(|door| door.label() == label)
    }
}

/// A class's process, whichever it is at the moment. A cheap handle: clones share it.
#[derive(Debug, Clone)]
pub struct Process {
    link: watch::Receiver<State>,
    stop: CancellationToken,
}

#[derive(Debug, Clone)]
enum State {
    /// There is none, and its keeper will start one.
    Away,
    /// It was started, and takes connections.
    There(Arc<UnixStream>),
    /// There is none, and nobody who would start one.
    Lost,
}

impl Process {
    /// Follows what a keeper starts. To be called within a runtime.
    ///
    /// # Errors
    /// The keeper's socket cannot be waited for.
    pub fn follow(keeper: Keeper) -> io::Result<Self> {
        keeper.socket.set_nonblocking(true)?;
        let keeper = UnixStream::from_std(keeper.socket)?;
        let (state, link) = watch::channel(State::Away);
        let stop = CancellationToken::new();
        tokio::spawn(follow(keeper, state, stop.clone()));
        Ok(Self { link, stop })
    }

    /// Whether it is there at the moment. It may not be ready yet.
    #[must_use]
    pub fn is_there(&self) -> bool {
        matches!(*self.link.borrow(), State::There(_))
    }

    /// Resolves when the keeper is gone, so that no process will be started any more.
    pub async fn lost(&self) {
        let mut link = self.link.clone();
        // Where nobody follows any more there is nobody either.
        let _lost = link.wait_for(|state| matches!(state, State::Lost)).await;
    }

    /// Ends the process, and waits for that; at most for so long.
    pub async fn stop(&self, patience: Duration) {
        self.stop.cancel();
        let _late = timeout(patience, self.lost()).await;
    }

    /// A new connection to it.
    pub(crate) async fn connect(&self, door: Door) -> Result<UnixStream, Away> {
        let State::There(link) = self.link.borrow().clone() else { return Err(Away) };
        let (mine, theirs) = UnixStream::pair().map_err(|error| {
            tracing::warn!(%error, "there are no sockets left for the process of a class");
            Away
        })?;
        let sent = link.async_io(Interest::WRITABLE, || pass::send(link.as_fd(), door.label(), theirs.as_fd()));
        match timeout(PATIENCE, sent).await {
            Ok(Ok(())) => Ok(mine),
            Ok(Err(_)) | Err(_) => Err(Away),
        }
    }
}

/// Takes the links that a keeper hands over, one after another.
async fn follow(keeper: UnixStream, state: watch::Sender<State>, stop: CancellationToken) {
    loop {
        let received = tokio::select! {
            received = keeper.async_io(Interest::READABLE, || pass::receive(keeper.as_fd())) => received,
            () = stop.cancelled() => break,
        };
        let link = match received {
            Ok(Some((_, link))) => std::os::unix::net::UnixStream::from(link),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(None) | Err(_) => break,
        };
        let Ok(link) = link.set_nonblocking(true).and_then(|()| UnixStream::from_std(link)) else { continue };
        let link = Arc::new(link);
        state.send_replace(State::There(Arc::clone(&link)));
        tokio::select! {
            () = ended(&link) => { state.send_replace(State::Away); }
            () = stop.cancelled() => {
                // It hears this, and ends; so does the keeper, after it.
                let _gone = rustix::net::shutdown(link.as_fd(), rustix::net::Shutdown::Write);
                let _gone = rustix::net::shutdown(keeper.as_fd(), rustix::net::Shutdown::Write);
                ended(&link).await;
                break;
            }
        }
    }
    state.send_replace(State::Away);
    let _gone = rustix::net::shutdown(keeper.as_fd(), rustix::net::Shutdown::Write);
    ended(&keeper).await;
    state.send_replace(State::Lost);
}

/// Waits until the other side of a socket has closed it. It has nothing to say: one that
/// sends something is not in order, and counts as gone.
async fn ended(socket: &UnixStream) {
    let mut sink = [0; 64];
    loop {
        if socket.readable().await.is_err() {
            return;
        }
        match socket.try_read(&mut sink) {
            Ok(_) => return,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
