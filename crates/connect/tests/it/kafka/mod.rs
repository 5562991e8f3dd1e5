//! Topics of a real broker, which `.ci/servers/kafka` runs.

mod broker;
mod reading;
mod tables;
mod views;
mod writing;
