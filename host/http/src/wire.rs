//! A stream that notes what arrives and gives up on clients that do not
//! take what is sent.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::activity::Activity;

/// How an HTTP/2 connection begins (RFC 9113, section 3.4); no HTTP/1 method
/// shares its first three bytes and their capitals.
const HTTP2_PREFACE: &[u8] = b"PRI";

/// The stream under hyper.
#[derive(Debug)]
pub(crate) struct Wire<S> {
    stream: S,
    activity: Activity,
    protocol: Protocol,
    write_timeout: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug)]
enum Protocol {
    Unknown,
    Http1,
    Http2,
}

impl<S> Wire<S> {
    pub(crate) fn new(stream: S, activity: Activity, write_timeout: Duration) -> Self {
        Self { stream, activity, protocol: Protocol::Unknown, write_timeout, stalled: None }
    }

    fn note(&mut self, arrived: &[u8]) {
        if arrived.is_empty() {
            return;
        }
        match self.protocol {
            Protocol::Http1 => self.activity.bytes_arrived(),
            Protocol::Http2 => {}
            Protocol::Unknown if arrived.starts_with(HTTP2_PREFACE) => {
                self.protocol = Protocol::Http2;
                self.activity.is_http2();
            }
            Protocol::Unknown => {
                self.protocol = Protocol::Http1;
                self.activity.bytes_arrived();
            }
        }
    }

    /// Turns a write that has made no progress for too long into an error.
    fn watch(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        match stalled.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client takes nothing of what is sent to it",
            ))),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.note(buf.filled().get(before..).unwrap_or_default());
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
