//! Roles, their passwords and tokens.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::changes::Lines;
use super::door::{Answer, Door};

const ROLES: &str = "CREATE TABLE t (a BIGINT PRIMARY KEY); INSERT INTO t VALUES (1);
    CREATE ROLE root SUPERUSER LOGIN PASSWORD 'top'; CREATE ROLE ada LOGIN PASSWORD 'a:b ü';
    CREATE ROLE idle PASSWORD 'x'; GRANT SELECT ON t TO ada";

pub(super) const ADA: (&str, &str) = ("ada", "a:b ü");

pub(super) fn door() -> Door {
    let door = Door::open();
    door.engine.execute(ROLES).expect("roles");
    door
}

pub(super) fn basic((name, password): (&str, &str)) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

pub(super) fn ask(door: &Door, method: &str, path: &str, authorization: &str) -> Answer {
    door.ask(method, path, &[("Authorization", authorization)], b"")
}

/// The answer to a statement of somebody.
fn sql(door: &Door, sql: &str, authorization: &str) -> Answer {
    let headers = [("Content-Type", "application/json"), ("Authorization", authorization)];
    door.ask("POST", "/v1/sql", &headers, json!({ "sql": sql }).to_string().as_bytes())
}

fn token(door: &Door, who: (&str, &str)) -> String {
    let answer = ask(door, "POST", "/v1/tokens", &basic(who));
    assert_eq!(answer.status, 201, "{}", answer.text());
    let token = answer.json()["token"].as_str().expect("a token").to_owned();
    assert_eq!(token.len(), 64);
    format!("Bearer {token}")
}

#[test]
fn a_role_shows_its_password_or_a_token() {
    let door = door();
    let who = "SELECT current_user AS who";
    let name = |answer: Answer| answer.json()["rows"][0]["who"].clone();
    assert_eq!(name(sql(&door, who, &basic(ADA))), Value::from("ada"));
    let unpadded = basic(ADA).trim_end_matches('=').to_owned();
    assert_eq!(name(sql(&door, who, &unpadded)), Value::from("ada"));
    let token = token(&door, ADA);
    assert_eq!(name(sql(&door, who, &token)), Value::from("ada"));
    assert_eq!(sql(&door, "DELETE FROM t", &token).status, 403);
    assert_eq!(ask(&door, "GET", "/v1/relations/t", &token).status, 200);
    // Nobody else is let in: the token of the server shows nothing once there are roles.
    let of_server = format!("Bearer {}", door.token());
    for wrong in [
        of_server.as_str(),
        &basic(("ada", "a:b")),
        &basic(("ada", "")),
        &basic(("nobody", "x")),
        &basic(("idle", "x")),
        &basic((
            "ada",
            door.engine
                .roles()
                .get("ada")
                .and_then(|ada| ada.verifier.as_deref())
                .expect("a verifier"),
        )),
        "Basic",
        "Basic !",
        "Basic YWRh",
        &token.replace("Bearer", "Basic"),
    ] {
        let answer = sql(&door, who, wrong);
        assert_eq!(answer.status, 401, "{wrong}");
        assert!(!answer.text().contains("a:b"), "{}", answer.text());
    }
}

#[test]
fn tokens_end_with_the_password_and_when_they_are_revoked() {
    let door = door();
    let (one, two, three) = (token(&door, ADA), token(&door, ADA), token(&door, ADA));
    let is_known = |token: &str| ask(&door, "GET", "/v1/relations", token).status == 200;
    assert_eq!(ask(&door, "DELETE", "/v1/tokens", &one).json()["revoked"], 1);
    assert!(!is_known(&one) && is_known(&two));
    assert_eq!(ask(&door, "DELETE", "/v1/tokens", &basic(ADA)).json()["revoked"], 2);
    assert!(!is_known(&two) && !is_known(&three));
    let four = token(&door, ADA);
    door.engine.execute("ALTER ROLE ada NOLOGIN").expect("it may not log in");
    assert!(!is_known(&four) && !is_known(&basic(ADA)));
    door.engine.execute("ALTER ROLE ada LOGIN").expect("it may log in");
    assert!(is_known(&four));
    door.engine.execute("ALTER ROLE ada PASSWORD 'new'").expect("another password");
    assert!(!is_known(&four));
    let five = token(&door, ("ada", "new"));
    door.engine
        .execute("DROP ROLE ada; CREATE ROLE ada LOGIN PASSWORD 'new'")
        .expect("another role");
    assert!(!is_known(&five));
}

#[test]
fn a_browser_gets_a_cookie_of_its_role() {
    let door = door();
    let token = token(&door, ADA);
    let path = format!("/login?token={}", token.trim_start_matches("Bearer "));
    let answer = door.ask("GET", &path, &[("Authorization", "Bearer none")], b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let cookie = answer.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().expect("a cookie").to_owned();
    let rows = door.ask("GET", "/v1/relations/t", &[("Cookie", &cookie)], b"");
    assert_eq!(rows.status, 200);
    door.engine.execute("REVOKE SELECT ON t FROM ada").expect("no right");
    assert_eq!(door.ask("GET", "/v1/relations/t", &[("Cookie", &cookie)], b"").status, 403);
    let stolen = cookie.split('=').nth(1).expect("a value");
    assert_eq!(ask(&door, "GET", "/v1/relations", &format!("Bearer {stolen}")).status, 401);
}

/// A stream outlives what its client has shown, and ends with the right to it.
#[test]
fn a_right_that_is_revoked_ends_a_stream() {
    let door = door();
    let token = token(&door, ADA);
    let headers = [("Accept", "application/x-ndjson"), ("Authorization", &*token)];
    let path = "/v1/relations/t/changes";
    let mut lines = Lines::open_with(&door, path, &headers).expect("a stream");
    assert_eq!(lines.change().expect("the rows")["snapshot"], true);
    door.engine.execute("INSERT INTO t VALUES (2)").expect("a row");
    assert!(lines.change().expect("a change").to_string().contains('2'));
    door.engine
        .execute("REVOKE SELECT ON t FROM ada; INSERT INTO t VALUES (33)")
        .expect("no right");
    let mut rest = String::new();
    while let Some(line) = lines.next() {
        rest += &line;
    }
    assert!(rest.contains("42501") && !rest.contains("33"), "{rest}");
    assert_eq!(Lines::open_with(&door, path, &headers).err(), Some(403));
}
