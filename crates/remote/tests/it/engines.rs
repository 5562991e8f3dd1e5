//! Engines over a journal of a server.
