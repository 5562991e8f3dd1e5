//! Many clients of one engine.
//!
//! ```sh
//! cargo bench -p alluvium-benches --bench clients -- [SECONDS] [SECTION…]
//! ```
//!
//! - `peak`: how much 1, 8 and 64 clients get done of one kind of work, each beginning the next piece when one is done.
//! - `fill`: the same clients at 30 % of that, beginning each piece when it is due (an *open loop*: what is late counts from when
//!   it was due), first alone, then while a view of 5,000,000 rows is filled; and how long that takes alone and beside them.
//! - `heavy`: reads of a table beside a view over it that takes 100 ms an epoch.
//! - `subscribers`: the cost of 1, 100 and 1,000 subscribers of a view for the call that commits, and in time on processors.

mod heavy;
mod pace;
mod subscribers;
mod view;
mod work;

use std::time::Duration;

fn main() {
    let Some(mut arguments) = alluvium_benches::arguments() else { return };
    let seconds = arguments.first().and_then(|first| first.parse().ok());
    if seconds.is_some() {
        arguments.remove(0);
    }
    let period = Duration::from_secs(seconds.unwrap_or(5));
    let is_wanted = |section: &str| arguments.is_empty() || arguments.iter().any(|a| a == section);
    if is_wanted("peak") || is_wanted("fill") {
        view::run(period, is_wanted("fill"));
    }
    if is_wanted("heavy") {
        heavy::run(period);
    }
    if is_wanted("subscribers") {
        subscribers::run();
    }
}
