//! The server as clients of HTTP see it.

mod access;
mod changes;
mod console;
mod documented;
mod door;
mod events;
mod faults;
mod inserts;
mod metrics;
mod openapi;
mod relations;
mod roles;
mod statements;
mod watched;
mod websocket;
