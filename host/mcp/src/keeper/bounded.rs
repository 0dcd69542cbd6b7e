//! A reader that does not take a line of any length.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Fails where a line is longer than allowed, before whoever reads it has kept all of it.
pub(crate) struct Bounded<R> {
    inner: R,
    longest: usize,
    /// Of the line that is being read.
    length: usize,
    /// Held for as long as the program is spoken with.
    _life: Arc<OwnedFd>,
}

impl<R> Bounded<R> {
    pub(super) fn new(inner: R, longest: usize, life: Arc<OwnedFd>) -> Self {
        Self { inner, longest, length: 0, _life: life }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let (mut length, longest) = (self.length, self.longest);
        let mut is_too_long = false;
        for part in buf.filled().get(before..).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            length += part.len();
            is_too_long |= length > longest;
            if part.ends_with(b"\n") {
                length = 0;
            }
        }
        self.length = length;
        if is_too_long {
            buf.set_filled(before);
            let text = format!("a message is longer than {longest} bytes");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        Poll::Ready(Ok(()))
    }
}
