//! Alluvium's sources and sinks.
