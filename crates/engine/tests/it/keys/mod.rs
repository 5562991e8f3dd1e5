//! Reads by key: in SQL and through [`alluvium::View`].

mod answers;
mod plans;
mod prepared;
mod views;
