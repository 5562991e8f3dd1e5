//! Webhooks: the changes of views, posted to a server.
//!
//! Each epoch is a request, or several if it is large, with its changes as JSON. Requests are as
//! [Standard Webhooks](https://www.standardwebhooks.com) has them: an identifier, which is the same if a request is made again, a
//! time, and a [signature] if a secret is shared. A server that takes each identifier once has each change once. A request that
//! is not taken is made again until it is.

mod delivery;
mod settings;
mod signature;

pub use delivery::Webhook;
