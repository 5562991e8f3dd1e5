//! The files of the console.

/// The Content-Security-Policy of all pages: scripts, styles and requests of this server alone, in no frame.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A file.
#[derive(Debug)]
pub struct Asset {
    /// Its path below `/console/`. That of the page itself is empty.
    pub path: &'static str,
    /// Its media type, with its encoding.
    pub media_type: &'static str,
    /// Its contents.
    pub bytes: &'static [u8],
    /// Whether those may have it who are not logged in.
    pub is_public: bool,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// A file of the folder `assets`.
macro_rules! file {
    ($path:literal, $file:literal, $media_type:expr, public: $is_public:literal) => {
        Asset {
            path: $path,
            media_type: $media_type,
            bytes: include_bytes!(concat!("../assets/", $file)),
            is_public: $is_public,
        }
    };
    ($file:literal) => {
        file!($file, $file, SCRIPT, public: false)
    };
}

/// The page for those who are not logged in.
pub const LOGIN: Asset = file!("login.html", "login.html", HTML, public: true);

/// All files but [`LOGIN`].
pub const ASSETS: &[Asset] = &[
    file!("", "index.html", HTML, public: false),
    file!("style.css", "style.css", CSS, public: true),
    file!("icon.svg", "icon.svg", SVG, public: true),
    file!("login.js", "login.js", SCRIPT, public: true),
    file!("activity.js"),
    file!("api.js"),
    file!("app.js"),
    file!("chart.js"),
    file!("complete.js"),
    file!("dom.js"),
    file!("explain.js"),
    file!("graph.js"),
    file!("live.js"),
    file!("overview.js"),
    file!("results.js"),
    file!("sql.js"),
    file!("table.js"),
    file!("text.js"),
    file!("view.js"),
];

/// The file at a path below `/console/`.
pub fn asset(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}
