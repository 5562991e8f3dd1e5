//! The Nexmark benchmark: events, queries and harness.
