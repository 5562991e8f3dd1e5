//! What Alluvium answers, judged.

mod files;
mod random;
