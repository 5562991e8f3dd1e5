use std::time::Duration;

use serde_json::json;

use super::stub::Stub;
use super::*;

const SCHEMA: &str = "{\"type\":\"record\",\"name\":\"r\",\"fields\":[]}";

fn registry(urls: &str, options: &[(&str, &str)]) -> Registry {
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let options = std::iter::once(("REGISTRY_URLS".to_owned(), urls.to_owned())).chain(options);
    Registry::new(Settings::read(options.collect()).unwrap().0).unwrap()
}

/// Nobody needs what is waited for.
fn over() -> Live {
    Live::new(Duration::ZERO, true, || true)
}

#[test]
fn a_schema_is_found_by_its_identifier_and_registered_once() {
    let stub = Stub::start();
    let registry = registry(&stub.url(), &[]);
    let id = registry.register("a/b c-value", SCHEMA, None).unwrap();
    assert_eq!(registry.register("a/b c-value", SCHEMA, None).unwrap(), id);
    let schema = registry.schema(id, None).unwrap().unwrap();
    assert_eq!((schema.text.as_str(), schema.kind), (SCHEMA, None));
    assert_eq!(registry.schema(id + 1, None).unwrap(), None);
    let line = &stub.state().requests[0].0;
    assert!(line.starts_with("POST /subjects/a%2Fb%20c-value/versions "), "{line}");
}

#[test]
fn a_server_that_does_not_answer_is_asked_again_and_then_the_next() {
    let stub = Stub::start();
    let id = stub.add("s", SCHEMA);
    stub.state().answers = vec![("503 Service Unavailable".to_owned(), String::new()); 2];
    // Nothing listens on the first address.
    let urls = json!(["http://127.0.0.1:1", stub.url()]).to_string();
    let schema = registry(&urls, &[]).schema(id, None).unwrap();
    assert_eq!(schema.unwrap().text, SCHEMA);
    let error = registry("http://127.0.0.1:1", &[]).schema(1, Some(&over())).unwrap_err();
    assert!(error.to_string().contains("nobody needs"), "{error}");
}

#[test]
fn a_redirect_is_not_followed_and_refusals_are_told() {
    let stub = Stub::start();
    let other = Stub::start();
    let id = other.add("s", SCHEMA);
    let moved = format!("302 Found\r\nLocation: {}/schemas/ids/{id}", other.url());
    let refused = json!({ "error_code": 42201, "message": "Invalid schema" }).to_string();
    for (status, body, problem) in [
        (moved.as_str(), "", "sends to another place"),
        ("401 Unauthorized", "", "check REGISTRY_USERNAME"),
        ("422 Unprocessable Entity", refused.as_str(), "Invalid schema"),
        ("200 OK", "<html>", "is not a schema"),
    ] {
        stub.state().answers = vec![(status.to_owned(), body.to_owned())];
        let error = registry(&stub.url(), &[]).schema(id, None).unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains(&stub.url()), "{error}");
    }
    assert_eq!(other.state().requests, []);
}

#[test]
fn an_address_of_the_link_is_not_connected_to() {
    for url in
        ["http://169.254.169.254", "http://[fe80::1]:8081", "http://[::ffff:169.254.169.254]"]
    {
        let error = registry(url, &[]).schema(1, None).unwrap_err().to_string();
        assert!(error.contains("an address of this link only"), "{error}");
    }
}

#[test]
fn who_asks_is_told_to_the_server_only() {
    const SECRET: &str = "xyzzy-4711";
    let stub = Stub::start();
    let mut settings = Settings::read(vec![
        ("REGISTRY_URLS".to_owned(), stub.url()),
        ("REGISTRY_USERNAME".to_owned(), "ann".to_owned()),
    ])
    .unwrap()
    .0;
    settings.credentials = Credentials::Basic("ann".to_owned(), Some(SECRET.to_owned()));
    let registry = Registry::new(settings).unwrap();
    assert_eq!(registry.schema(1, None).unwrap(), None);
    let expected = format!("Basic {}", BASE64_STANDARD.encode(format!("ann:{SECRET}")));
    assert_eq!(stub.state().requests[0].1.as_deref(), Some(expected.as_str()));
    stub.state().answers = vec![("403 Forbidden".to_owned(), String::new())];
    let error = registry.schema(1, None).unwrap_err();
    let shown = format!("{error} {error:?} {registry:?}");
    assert!(!shown.contains(SECRET) && !shown.contains(&expected), "{shown}");
}

#[test]
fn a_file_of_certificates_that_has_none_is_told() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display().to_string();
    for (path, problem) in [(path.as_str(), "it has none"), ("/nowhere/ca.pem", "cannot read")] {
        let options = [("REGISTRY_URLS", "https://a"), ("REGISTRY_CA", path)];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = Settings::read(options.to_vec()).unwrap().0;
        let error = Registry::new(settings).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}
