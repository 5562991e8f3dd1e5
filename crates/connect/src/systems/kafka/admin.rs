//! Topics that are made.

use std::pin::pin;
use std::task::{Context as TaskContext, Poll};
use std::thread;
use std::time::Duration;

use alluvium::unstable::thread_waker;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::client::Context;

/// Makes a topic of one partition that keeps the last message of each key, if it is not there.
pub fn make_compacted(
    client: &ClientConfig,
    topic: &str,
    timeout: Duration,
) -> Result<(), KafkaError> {
    let admin: AdminClient<Context> = client.create_with_context(Context::default())?;
    let topic =
        NewTopic::new(topic, 1, TopicReplication::Fixed(-1)).set("cleanup.policy", "compact");
    let options =
        AdminOptions::new().request_timeout(Some(timeout)).operation_timeout(Some(timeout));
    let made = wait(admin.create_topics([&topic], &options))?;
    match made.into_iter().next() {
        Some(Err((_, code))) if code != RDKafkaErrorCode::TopicAlreadyExists => {
            Err(KafkaError::AdminOp(code))
        }
        _ => Ok(()),
    }
}

/// The outcome of a future, which this thread waits for.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let waker = thread_waker();
    let (mut context, mut future) = (TaskContext::from_waker(&waker), pin!(future));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => thread::park(),
        }
    }
}
