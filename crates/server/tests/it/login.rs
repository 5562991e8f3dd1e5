//! Logins of roles.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use alluvium::Engine;
use alluvium_server::{Error, Limits, Server};
use tempfile::TempDir;
use tokio_postgres::error::SqlState;

use super::secure::{Certificates, begin, log_in, quick, with_roles, with_roles_and};
use super::served::{Served, field, message, read_message, startup};

const ROLES: [&str; 2] =
    ["CREATE ROLE root SUPERUSER LOGIN PASSWORD 'r00t'", "CREATE ROLE ada LOGIN PASSWORD 'pencil'"];

/// The code of the error that a login ends with.
fn refused(served: &Served, user: &str, password: &str) -> (SqlState, String) {
    served.clients.block_on(async {
        let error = log_in(served.address(), user, password).await.expect_err("a refusal");
        let error = error.as_db_error().expect("an answer of the server");
        (error.code().clone(), error.message().to_owned())
    })
}

#[test]
fn a_role_logs_in_with_its_password_and_has_its_rights() {
    let served = with_roles(quick(), None, &[&ROLES[..], &["CREATE TABLE t (a BIGINT)"]].concat());
    served.clients.block_on(async {
        let client = log_in(served.address(), "ada", "pencil").await.expect("a login");
        let row = client.query_one("SELECT current_user::VARCHAR", &[]).await.expect("a row");
        assert_eq!(row.get::<_, String>(0), "ada");
        let error = client.batch_execute("SELECT * FROM t").await.expect_err("a refusal");
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
        let root = log_in(served.address(), "root", "r00t").await.expect("a login");
        root.batch_execute("GRANT SELECT ON t TO ada").await.expect("a grant");
        client.batch_execute("SELECT * FROM t").await.expect("an answer");
        // A verifier that Postgres has made.
        let verifier = "SCRAM-SHA-256$4096:0aez83I/ieY32PZ/abYJkA==$PXonUyAdLeWyT1Fwc8ooDQzPzmmAHGx1NinO8gIXXgY=:ac1bqeYmYSW/+7o6v4IIx9GXHRhGDf7feKeNmZFg/Bk=";
        let sql = format!("CREATE ROLE eve LOGIN PASSWORD '{verifier}'");
        root.batch_execute(&sql).await.expect("a role");
        assert!(log_in(served.address(), "eve", "pencil").await.is_ok());
        assert!(log_in(served.address(), "eve", "pen").await.is_err());
    });
}

#[test]
fn who_may_not_log_in_is_told_as_postgres_does() {
    let roles = [
        "CREATE ROLE idle PASSWORD 'x'",
        "CREATE ROLE bare LOGIN",
        "CREATE ROLE late LOGIN PASSWORD 'x' VALID UNTIL '2020-01-01'",
        "CREATE ROLE soon LOGIN PASSWORD 'x' VALID UNTIL '2999-01-01'",
        "CREATE ROLE few LOGIN PASSWORD 'x' CONNECTION LIMIT 1",
    ];
    let served = with_roles(quick(), None, &[&ROLES[..], &roles].concat());
    let wrong = |user: &str| {
        let message = format!("password authentication failed for user \"{user}\"");
        (SqlState::INVALID_PASSWORD, message)
    };
    for (user, password) in
        [("ada", "pen"), ("ada", ""), ("nobody", "x"), ("bare", "x"), ("late", "x"), ("idle", "y")]
    {
        let password = if password.is_empty() { " " } else { password };
        assert_eq!(refused(&served, user, password), wrong(user));
    }
    let (code, text) = refused(&served, "idle", "x");
    assert_eq!(code, SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
    assert!(text.starts_with("role \"idle\" is not permitted to log in"), "{text}");
    served.clients.block_on(async {
        assert!(log_in(served.address(), "soon", "x").await.is_ok());
        let _kept = log_in(served.address(), "few", "x").await.expect("a login");
        let error = log_in(served.address(), "few", "x").await.expect_err("a refusal");
        assert_eq!(error.code(), Some(&SqlState::TOO_MANY_CONNECTIONS));
        let error = error.as_db_error().expect("an answer");
        assert!(error.message().starts_with("too many connections for role \"few\""), "{error}");
    });
}

/// The messages of a login with a wrong password, with their lengths, the salt, and the error.
fn conversation(served: &Served, user: &str) -> (Vec<(u8, usize)>, String, String) {
    let mut stream = served.raw();
    let (kind, methods) = begin(&mut stream, user);
    let mut seen = vec![(kind, methods.len())];
    let first = b"n,,n=,r=abcdefghijklmnopqrstuvwx";
    let mut body = b"SCRAM-SHA-256\0".to_vec();
    body.extend((first.len() as u32).to_be_bytes());
    body.extend(first);
    stream.write_all(&message(b'p', &body)).expect("a message");
    let (kind, challenge) = read_message(&mut stream);
    seen.push((kind, challenge.len()));
    let challenge = String::from_utf8_lossy(&challenge[4..]).into_owned();
    let part = |name: &str| {
        let found = challenge.split(',').find_map(|part| part.strip_prefix(name));
        found.expect(name).to_owned()
    };
    let proof = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let last = format!("c=biws,r={},p={proof}", part("r="));
    stream.write_all(&message(b'p', last.as_bytes())).expect("a message");
    let (kind, error) = read_message(&mut stream);
    seen.push((kind, 0));
    let text = [field(&error, b'C'), field(&error, b'M')].map(Option::unwrap_or_default).join(" ");
    (seen, part("s="), text.replace(user, "…"))
}

#[test]
fn an_unknown_role_is_answered_as_a_wrong_password() {
    let served = with_roles(quick(), None, &ROLES);
    let (of_ada, salt, error) = conversation(&served, "ada");
    let (of_nobody, decoy, same) = conversation(&served, "nobody");
    assert_eq!((&of_ada, &error), (&of_nobody, &same));
    assert_eq!(salt.len(), decoy.len());
    // The salt of each is always the same.
    assert_eq!(conversation(&served, "ada").1, salt);
    assert_eq!(conversation(&served, "nobody").1, decoy);
    assert_ne!(conversation(&served, "nobody2").1, decoy);
}

#[test]
fn malformed_answers_end_the_connection_alone() {
    let served = with_roles(quick(), None, &ROLES);
    let initial = |method: &str, length: u32, data: &[u8]| {
        [method.as_bytes(), &[0], &length.to_be_bytes(), data].concat()
    };
    let good = b"n,,n=,r=abc";
    for body in [
        Vec::new(),
        b"SCRAM-SHA-256".to_vec(),
        b"SCRAM-SHA-256\0".to_vec(),
        initial("SCRAM-SHA-256", u32::MAX, b""),
        initial("SCRAM-SHA-256", 0x7fff_ffff, good),
        initial("SCRAM-SHA-256", 3, good),
        initial("SCRAM-SHA-256", 3, b"n,,"),
        initial("SCRAM-SHA-256", 3, b"\xff\xff\xff"),
        initial("SCRAM-SHA-256-PLUS", good.len() as u32, good),
        initial("SCRAM-SHA-256", 33, b"p=tls-server-end-point,,n=,r=abcd"),
        initial("PLAIN", good.len() as u32, good),
        vec![b'x'; 5_000],
    ] {
        let mut stream = served.raw();
        begin(&mut stream, "ada");
        stream.write_all(&message(b'p', &body)).expect("a message");
        let (kind, error) = read_message(&mut stream);
        assert_eq!((kind, field(&error, b'C').as_deref()), (b'E', Some("08P01")), "{body:?}");
        assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
    }
    // A statement in place of the password.
    let mut stream = served.raw();
    begin(&mut stream, "ada");
    stream.write_all(&message(b'Q', b"SELECT 1\0")).expect("a message");
    assert_eq!(read_message(&mut stream).0, b'E');
    assert_eq!(served.running.clients(), 0);
}

#[test]
fn a_role_over_a_socket_is_the_one_that_the_process_says() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("socket");
    let served = with_roles_and(quick(), None, &ROLES, Some(&path));
    let answer = |user: &str| {
        let mut stream = UnixStream::connect(&path).expect("a connection");
        stream.write_all(&startup(&[("user", user)])).expect("a startup");
        stream.write_all(&message(b'X', b"")).expect("the end");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        answer
    };
    assert_eq!(answer("ada")[..9], *b"R\0\0\0\x08\0\0\0\0");
    let refused = answer("nobody");
    assert_eq!(field(&refused[5..], b'C').as_deref(), Some("28000"));
    drop(served);
}

/// How many threads the process has.
fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("threads").count()
}

#[test]
fn wrong_passwords_take_no_threads() {
    let count = if std::env::var_os("ALLUVIUM_LONG").is_some() { 10_000 } else { 500 };
    let served = with_roles(quick(), None, &ROLES);
    conversation(&served, "ada");
    let before = threads();
    let address = served.address();
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            std::thread::spawn(move || {
                for number in 0..count / 8 {
                    let mut stream = TcpStream::connect(address).expect("a connection");
                    begin(&mut stream, &format!("user{worker}_{number}"));
                    let body = [b"SCRAM-SHA-256\0\0\0\0\x0b".as_slice(), b"n,,n=,r=abc"].concat();
                    stream.write_all(&message(b'p', &body)).expect("a message");
                    read_message(&mut stream);
                    stream.write_all(&message(b'p', b"c=biws,r=abc,p=AAAA")).expect("a message");
                    assert_eq!(read_message(&mut stream).0, b'E');
                }
            })
        })
        .collect();
    let during = threads();
    workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
    assert!(during <= before + 8 + 2, "{before} threads, then {during}");
    served.clients.block_on(async {
        log_in(address, "ada", "pencil").await.expect("a login");
    });
}

#[test]
fn a_wrong_password_waits_for_its_answer() {
    let served = with_roles(Limits::default(), None, &ROLES);
    let begun = Instant::now();
    for _ in 0..2 {
        conversation(&served, "ada");
    }
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    // Who knows the password does not wait.
    let begun = Instant::now();
    served.clients.block_on(async {
        log_in(served.address(), "ada", "pencil").await.expect("a login");
    });
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn addresses_that_others_reach_need_roles_and_a_certificate() {
    let certificates = Certificates::new();
    let refused = |has_roles: bool, has_certificate: bool| {
        let engine = Engine::builder().workers(1).open_in_memory().expect("an engine");
        if has_roles {
            engine.execute("CREATE ROLE ada SUPERUSER LOGIN").expect("a role");
        }
        let mut server = Server::new(engine).pg(([192, 0, 2, 1], 0).into());
        if has_certificate {
            server = server.tls(certificates.tls());
        }
        server.start().err().expect("a refusal")
    };
    for (has_roles, has_certificate, reason) in [
        (false, false, "create roles and name a certificate"),
        (false, true, "create roles first"),
        (true, false, "name a certificate"),
    ] {
        let error = refused(has_roles, has_certificate);
        assert!(matches!(error, Error::Exposed { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    // It is nobody's address here, so it cannot be listened on; but it may.
    assert!(matches!(refused(true, true), Error::Listen { .. }));
}
