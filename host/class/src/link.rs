//! A class's process, from within: the connections that it is given.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType, sockopt};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::pass;
use crate::process::Door;

/// Connections that wait for being served; the front waits while there are more.
const WAITING: usize = 64;

/// Standard input is not what a keeper gives.
#[derive(Debug, thiserror::Error)]
#[error("standard input is no link to a host: {0}; a class's process is started by the host that has the class")]
pub struct NoLink(#[source] io::Error);

/// The way to the front, over which connections come.
#[derive(Debug)]
pub struct Link(std::os::unix::net::UnixStream);

/// Where the connections of a link come out, by what they are for.
#[derive(Debug)]
pub struct Doors {
    /// Requests of tenants.
    pub requests: mpsc::Receiver<UnixStream>,
    /// What the operator asks, by way of the front.
    pub operator: mpsc::Receiver<UnixStream>,
}

impl Link {
    /// Takes standard input, which a keeper has made a link.
    ///
    /// # Errors
    /// It is none.
    pub fn from_stdin() -> Result<Self, NoLink> {
        from_stdin().map(|open| Self(open.into())).map_err(NoLink)
    }

    /// One that a test has made.
    #[cfg(test)]
    pub(crate) fn of(stream: std::os::unix::net::UnixStream) -> Self {
        Self(stream)
    }

    /// Takes connections for as long as the front is there. The future ends when the
    /// front does, or has closed its end.
    ///
    /// # Errors
    /// The link cannot be waited for. To be called within a runtime.
    pub fn serve(self) -> Result<(Doors, impl Future<Output = ()> + Send + use<>), NoLink> {
        self.0.set_nonblocking(true).map_err(NoLink)?;
        let link = UnixStream::from_std(self.0).map_err(NoLink)?;
        let (requests, for_requests) = mpsc::channel(WAITING);
        let (operator, for_operator) = mpsc::channel(WAITING);
        let doors = Doors { requests: for_requests, operator: for_operator };
        Ok((doors, take(link, requests, operator)))
    }
}

async fn take(link: UnixStream, requests: mpsc::Sender<UnixStream>, operator: mpsc::Sender<UnixStream>) {
    loop {
        let (label, open) = match link.async_io(Interest::READABLE, || pass::receive(link.as_fd())).await {
            Ok(Some(received)) => received,
            Ok(None) => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // Out of handles, for one: the connection is lost, and its client is told.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!(%error, "a connection from the host was lost");
                continue;
            }
            Err(error) => {
                tracing::error!(%error, "the link to the host is broken");
                return;
            }
        };
        let door = match Door::of(label) {
            Some(Door::Requests) => &requests,
            Some(Door::Operator) => &operator,
            None => continue,
        };
        match connection(open) {
            // Nobody takes connections any more: it is closed, and its client is told.
            Ok(connection) => drop(door.send(connection).await),
            Err(error) => tracing::warn!(%error, "a connection from the host cannot be served"),
        }
    }
}

fn connection(open: OwnedFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(open);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Standard input as a handle of its own, if it is one end of a pair.
pub(crate) fn from_stdin() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    let is_stream = sockopt::socket_type(&stdin).is_ok_and(|kind| kind == SocketType::STREAM);
    let is_unix = sockopt::socket_domain(&stdin).is_ok_and(|family| family == AddressFamily::UNIX);
    if !(is_stream && is_unix) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no Unix socket"));
    }
    stdin.as_fd().try_clone_to_owned()
}
