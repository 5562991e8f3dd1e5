//! The calls of a server.

use std::convert::Infallible;
use std::future::Ready;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request as HttpRequest, Response as HttpResponse};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, ServerStreamingService, StreamingService, UnaryService};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use super::journals::Journals;
use super::{follow, replay, writer};
use crate::messages::{
    ATTEND, Attend, Attending, FOLLOW, From, MESSAGE, REPLAY, Records, ToServer, ToWriter, WRITE,
};

/// How many answers may wait to be sent.
const ANSWERS: usize = 2;

/// Answers the calls of all connections.
#[derive(Clone)]
pub(super) struct Service {
    journals: Arc<Journals>,
}

impl Service {
    pub(super) fn new(journals: Arc<Journals>) -> Service {
        Service { journals }
    }
}

impl NamedService for Service {
    const NAME: &'static str = "alluvium.journal.v1.Journal";
}

impl tower::Service<HttpRequest<Body>> for Service {
    type Response = HttpResponse<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<HttpResponse<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<Body>) -> Self::Future {
        let journals = self.journals.clone();
        Box::pin(async move {
            Ok(match request.uri().path() {
                WRITE => {
                    let grpc = Grpc::new(ProstCodec::default());
                    grpc.max_decoding_message_size(MESSAGE)
                        .streaming(Writes(journals), request)
                        .await
                }
                REPLAY => {
                    let grpc = Grpc::new(ProstCodec::default());
                    grpc.max_decoding_message_size(MESSAGE)
                        .server_streaming(Replays(journals), request)
                        .await
                }
                FOLLOW => {
                    let grpc = Grpc::new(ProstCodec::default());
                    grpc.max_decoding_message_size(MESSAGE)
                        .server_streaming(Follows(journals), request)
                        .await
                }
                ATTEND => {
                    let grpc = Grpc::new(ProstCodec::default());
                    grpc.max_decoding_message_size(MESSAGE).unary(Attends(journals), request).await
                }
                _ => Status::unimplemented("there is no such call").into_http(),
            })
        })
    }
}

struct Writes(Arc<Journals>);

impl StreamingService<ToServer> for Writes {
    type Response = ToWriter;
    type ResponseStream = ReceiverStream<Result<ToWriter, Status>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<ToServer>>) -> Self::Future {
        let (journals, requests) = (self.0.clone(), request.into_inner());
        let (answers, stream) = mpsc::channel(ANSWERS);
        let runtime = Handle::current();
        runtime.clone().spawn_blocking(move || {
            writer::serve(&journals, &runtime, requests, &answers);
        });
        std::future::ready(Ok(Response::new(ReceiverStream::new(stream))))
    }
}

struct Replays(Arc<Journals>);

impl ServerStreamingService<From> for Replays {
    type Response = Records;
    type ResponseStream = ReceiverStream<Result<Records, Status>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<From>) -> Self::Future {
        let (journals, from) = (self.0.clone(), request.into_inner());
        let (records, stream) = mpsc::channel(ANSWERS);
        tokio::task::spawn_blocking(move || replay::serve(&journals, &from, &records));
        std::future::ready(Ok(Response::new(ReceiverStream::new(stream))))
    }
}

struct Follows(Arc<Journals>);

impl ServerStreamingService<From> for Follows {
    type Response = Records;
    type ResponseStream = ReceiverStream<Result<Records, Status>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<From>) -> Self::Future {
        let (journals, from) = (self.0.clone(), request.into_inner());
        let (records, stream) = mpsc::channel(ANSWERS);
        let runtime = Handle::current();
        runtime.clone().spawn_blocking(move || {
            follow::serve(&journals, &runtime, &from, &records);
        });
        std::future::ready(Ok(Response::new(ReceiverStream::new(stream))))
    }
}

struct Attends(Arc<Journals>);

impl UnaryService<Attend> for Attends {
    type Response = Attending;
    type Future = BoxFuture<'static, Result<Response<Attending>, Status>>;

    fn call(&mut self, request: Request<Attend>) -> Self::Future {
        let (journals, attend) = (self.0.clone(), request.into_inner());
        Box::pin(async move {
            let attended = tokio::task::spawn_blocking(move || journals.attend(&attend)).await;
            attended.unwrap_or_else(|_| Err(Status::aborted("the server ends"))).map(Response::new)
        })
    }
}
