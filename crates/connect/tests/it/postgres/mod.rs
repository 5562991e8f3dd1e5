//! Tables of a real server of Postgres, which `.ci/servers/postgres` runs.

mod bank;
mod faults;
mod server;
mod setup;
mod tables;
mod views;
