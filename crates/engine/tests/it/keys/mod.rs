//! Reads by key: in SQL and through [`alluvium::View`].

mod answers;
mod bounds;
mod handles;
mod literals;
mod plans;
mod prepared;
mod views;

pub use self::answers::Random;
