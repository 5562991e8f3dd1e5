//! Alluvium: an embeddable, incremental SQL engine whose views are always exactly right.
