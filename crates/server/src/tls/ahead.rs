//! A connection of which some bytes have been read already.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection of which some bytes have been read already: who reads gets these first.
pub(crate) struct Ahead<S> {
    bytes: BytesMut,
    stream: S,
}

impl<S> Ahead<S> {
    pub(crate) fn new(bytes: BytesMut, stream: S) -> Self {
        Self { bytes, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Ahead<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.bytes.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, to);
        }
        let length = this.bytes.len().min(to.remaining());
        to.put_slice(&this.bytes[..length]);
        this.bytes.advance(length);
        if this.bytes.is_empty() {
            this.bytes = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Ahead<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
