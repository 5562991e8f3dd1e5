//! Alluvium's results, compared with other databases.

mod files;
mod hostile;
mod random;
