//! What Alluvium answers, judged.

mod files;
