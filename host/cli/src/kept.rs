//! A body that keeps what it needs until it is gone.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

/// A body, and what must be there for as long as it is.
pub(crate) struct Kept<B, K> {
    body: B,
    _kept: K,
}

impl<B, K> Kept<B, K> {
    pub(crate) fn new(body: B, kept: K) -> Self {
        Self { body, _kept: kept }
    }
}

impl<B: Body + Unpin, K: Unpin> Body for Kept<B, K> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http_body_util::{BodyExt, Full};

    use super::*;

    #[tokio::test]
    async fn what_is_kept_is_there_until_the_body_is_gone() {
        let kept = Arc::new(());
        let body = Kept::new(Full::new(Bytes::from_static(b"text")), Arc::clone(&kept));
        assert_eq!((Arc::strong_count(&kept), body.size_hint().exact()), (2, Some(4)));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "text");
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
