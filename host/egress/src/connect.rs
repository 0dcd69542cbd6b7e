//! TCP to the first of several addresses that answers.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::net::TcpStream;

use crate::error::EgressError;
use crate::target::Target;

/// How long an address is alone before the next one is tried beside it
/// (RFC 8305, section 5).
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to the addresses in their order: to the next when one fails or
/// takes long, and keeps the first that is there. The addresses have been
/// judged; nothing is resolved again.
pub(crate) async fn connect(
    target: &Target,
    addresses: Vec<SocketAddr>,
) -> Result<(TcpStream, SocketAddr), EgressError> {
    let mut waiting = addresses.into_iter();
    let mut trying = FuturesUnordered::new();
    let mut failed: Option<io::Error> = None;
    let attempt = |address| async move { (TcpStream::connect(address).await, address) };
    trying.extend(waiting.next().map(attempt));
    loop {
        let result = tokio::select! {
            biased;
            Some(result) = trying.next(), if !trying.is_empty() => result,
            () = tokio::time::sleep(HEAD_START), if waiting.len() > 0 => {
                trying.extend(waiting.next().map(attempt));
                continue;
            }
            else => break,
        };
        match result {
            (Ok(stream), address) => {
                // A failure only costs time.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(target: "nala::outbound", %error, "TCP_NODELAY cannot be set");
                }
                return Ok((stream, address));
            }
            (Err(error), _) => {
                failed.get_or_insert(error);
                trying.extend(waiting.next().map(attempt));
            }
        }
    }
    Err(of_io(target, failed.as_ref()))
}

fn of_io(target: &Target, error: Option<&io::Error>) -> EgressError {
    let name = target.to_string();
    match error.map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => EgressError::ConnectionRefused { target: name },
        Some(io::ErrorKind::TimedOut) => EgressError::ConnectionTimeout,
        Some(
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable,
        ) => EgressError::Unroutable { target: name },
        _ => EgressError::ConnectionTerminated(error.map_or(String::new(), ToString::to_string)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::net::TcpListener;

    use super::*;
    use crate::target::{Host, Scheme};

    #[tokio::test]
    async fn the_next_address_is_tried_when_one_refuses() {
        let target = Target { scheme: Scheme::Http, host: Host::Name(Arc::from("a.example")), port: 80 };
        let open = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let nobody = closed.local_addr().unwrap();
        drop(closed);
        let somebody = open.local_addr().unwrap();
        let (_, address) = connect(&target, vec![nobody, somebody]).await.unwrap();
        assert_eq!(address, somebody);
        let error = connect(&target, vec![nobody]).await.unwrap_err();
        assert!(matches!(error, EgressError::ConnectionRefused { .. }), "{error}");
    }
}
