//! A connection that is counted, with the bytes that pass.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Traffic, add};

/// A connection, open until it is dropped. Bytes count as they pass the network: encrypted, if they are.
pub(crate) struct Counted<S> {
    stream: S,
    traffic: Arc<Traffic>,
}

impl<S> Counted<S> {
    /// Counts a connection that was accepted.
    pub(crate) fn new(stream: S, traffic: Arc<Traffic>) -> Self {
        add(&traffic.connections, 1);
        add(&traffic.open, 1);
        Self { stream, traffic }
    }

    /// The connection itself.
    pub(crate) fn get_ref(&self) -> &S {
        &self.stream
    }
}

impl<S> Drop for Counted<S> {
    fn drop(&mut self) {
        self.traffic.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, to));
        add(&self.traffic.received, (to.filled().len() - before) as u64);
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        self.sent(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, parts));
        self.sent(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S> Counted<S> {
    fn sent(&self, written: io::Result<usize>) -> Poll<io::Result<usize>> {
        if let Ok(bytes) = &written {
            add(&self.traffic.sent, *bytes as u64);
        }
        Poll::Ready(written)
    }
}
