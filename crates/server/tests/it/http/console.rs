//! The console, as browsers get it.

use alluvium_console::{ASSETS, LOGIN};

use super::door::{Answer, Door};

/// What a browser accepts when it opens a page.
const PAGE: (&str, &str) =
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
/// A cookie of nobody.
const NOBODY: (&str, &str) = ("Cookie", "alluvium-0=x");
/// The most bytes of all files together.
const MOST: usize = 300 * 1024;

fn policy(answer: &Answer) -> Vec<&str> {
    answer.header("content-security-policy").split(';').map(str::trim).collect()
}

fn check_headers(answer: &Answer, of: &str) {
    let policy = policy(answer);
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(&part), "{of}: {policy:?}");
    }
    assert!(
        policy.iter().all(|part| !part.contains("unsafe") && !part.contains('*')),
        "{of}: {policy:?}"
    );
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(answer.header(name), value, "{of}");
    }
}

#[test]
fn its_files_are_served_to_who_is_known() {
    let door = Door::open();
    for asset in ASSETS {
        let path = format!("/console/{}", asset.path);
        let answer = door.get(&path);
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, asset.media_type),
            "{path}"
        );
        assert_eq!(answer.body, asset.bytes, "{path}");
        check_headers(&answer, &path);
        let answer = door.ask("GET", &path, &[NOBODY], b"");
        assert_eq!(answer.status, if asset.is_public { 200 } else { 401 }, "{path}");
    }
    for path in [
        "/console/nothing.js",
        "/console/..%2FCargo.toml",
        "/console/%00",
        "/console/app.js/",
        "/console//",
    ] {
        assert_eq!(door.get(path).status, 404, "{path}");
    }
    for path in ["/", "/console"] {
        let answer = door.get(path);
        assert_eq!((answer.status, answer.header("location")), (303, "/console/"), "{path}");
    }
    // All other answers allow nothing, as before.
    assert_eq!(
        policy(&door.get("/v1/relations")),
        ["default-src 'none'", "frame-ancestors 'none'"]
    );
}

#[test]
fn browsers_that_are_not_logged_in_are_told_how() {
    let door = Door::open();
    for path in ["/", "/console/", "/console/app.js", "/v1/relations", "/login?token=x"] {
        let answer = door.ask("GET", path, &[NOBODY, PAGE], b"");
        assert_eq!((answer.status, answer.body.as_slice()), (401, LOGIN.bytes), "{path}");
        assert_eq!(answer.header("content-type"), LOGIN.media_type);
        check_headers(&answer, path);
        for accept in
            [("Accept", "*/*"), ("Accept", "application/json"), ("Accept", "text/event-stream")]
        {
            let answer = door.ask("GET", path, &[NOBODY, accept], b"");
            assert_eq!(answer.status, 401, "{path}, {accept:?}");
            assert_eq!(
                answer.header("content-type"),
                "application/problem+json",
                "{path}, {accept:?}"
            );
        }
    }
}

#[test]
fn a_link_with_the_token_leads_to_it() {
    let door = Door::open();
    let link = format!("/login?token={}", door.token());
    let answer = door.ask("GET", &link, &[NOBODY, PAGE], b"");
    assert_eq!((answer.status, answer.header("location")), (303, "/console/"));
    let cookie = answer.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().expect("a cookie");
    assert_eq!(door.ask("GET", "/console/", &[("Cookie", cookie), PAGE], b"").status, 200);
}

#[test]
fn its_files_are_small_and_ask_no_other_host() {
    let all = || ASSETS.iter().chain([&LOGIN]);
    let bytes: usize = all().map(|asset| asset.bytes.len()).sum();
    assert!(bytes <= MOST, "{bytes} bytes");
    for asset in all() {
        let text = std::str::from_utf8(asset.bytes).expect("UTF-8");
        // The name of SVG's elements, which nothing asks for.
        let text = text.replace("http://www.w3.org/2000/svg", "");
        for other in [
            "http://", "https://", "ws://", "wss://", "\"//", "'//", "`//", "(//", "@import",
            "url(",
        ] {
            assert!(!text.contains(other), "{} has {other}", asset.path);
        }
    }
}

/// With [`POLICY`](alluvium_console::POLICY) a browser would refuse these, or values could become markup.
#[test]
fn its_files_have_no_script_or_style_inside_of_markup_and_make_no_markup() {
    for asset in ASSETS.iter().chain([&LOGIN]) {
        let text = std::str::from_utf8(asset.bytes).expect("UTF-8");
        let banned: &[&str] = match asset.media_type.split(';').next() {
            Some("text/html") => &[
                "<style",
                " style=",
                "<script>",
                " onclick=",
                " onload=",
                " onerror=",
                "javascript:",
            ],
            Some("text/javascript") => &[
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "DOMParser",
                "createContextualFragment",
                "setHTML",
                "srcdoc",
                "eval(",
                "new Function",
                "\"style\"",
            ],
            _ => &[],
        };
        for word in banned {
            assert!(!text.contains(word), "{} has {word}", asset.path);
        }
    }
}

/// Each module that another one imports is served.
#[test]
fn its_modules_are_all_there() {
    let is_there = |path: &str| ASSETS.iter().any(|asset| asset.path == path);
    let mut found = 0;
    for asset in ASSETS.iter().chain([&LOGIN]) {
        let text = std::str::from_utf8(asset.bytes).expect("UTF-8");
        let named = ["\"./", "\"/console/"].into_iter().flat_map(|start| text.split(start).skip(1));
        for rest in named {
            let name = rest.split('"').next().unwrap_or_default();
            if name.ends_with(".js") || name.ends_with(".css") || name.ends_with(".svg") {
                assert!(is_there(name), "{} names {name}", asset.path);
                found += 1;
            }
        }
    }
    assert!(found > 30, "{found}");
}
