//! Alluvium's results, compared with other databases.

mod files;
mod random;
