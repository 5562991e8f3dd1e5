//! The console: pages by which a browser looks into an engine.
//!
//! Its files are part of the program. There is no build chain, and they load nothing from other hosts. They know what any client can know:
//! they ask `/v1/sql` and `/v1/relations/{name}/changes`, with the cookie of the browser.
//!
//! `index.html` is the page, and `app.js` shows in it what its address says. `login.html` is for those who are not logged in: it and what
//! it needs are [public](Asset::is_public).

mod asset;

pub use self::asset::{ASSETS, Asset, LOGIN, POLICY, asset};
