//! Reads by key: in SQL and through [`alluvium::View`].

mod answers;
mod plans;
mod views;
