//! `alluvium report`, of a server and of `alluvium run --console`: what is in its file, and what is not.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

use tempfile::TempDir;

use crate::binary::binary;
use crate::serve::Served;
use crate::shell::{run, write};
use crate::signals::send;

const PROGRAM: &str = "-- secret-comment
CREATE TABLE bid (auction BIGINT, price BIGINT, channel VARCHAR DEFAULT 'secret-default');
CREATE VIEW large AS SELECT auction, price, channel || 'secret-text' AS channel FROM bid WHERE price > 770077;
CREATE MATERIALIZED VIEW best WITH (connector = 'file', path = 'secret-output.csv', mode = 'changes') AS
    SELECT auction, channel, MAX(price) AS price FROM large
    WHERE channel NOT LIKE 'secret-pattern%' AND auction IN (771177, 1) GROUP BY auction, channel;
INSERT INTO bid SELECT 1, 800000 + n, 'secret-row' FROM generate_series(1, 1000) AS s(n);
";

#[test]
fn a_report_tells_of_a_view_and_has_nobodys_data() {
    let folder = TempDir::new().unwrap();
    let (program, temporary) =
        (write(&folder, "secret-program.sql", PROGRAM), TempDir::new().unwrap());
    let served = Served::start(program.as_ref(), &folder.path().join("state"), temporary.path());
    let file = folder.path().join("report.html");
    let file = file.to_str().unwrap();
    let report = [
        "report",
        "--connect",
        &served.folder,
        "--view",
        "best",
        "--seconds",
        "1",
        "--output",
        file,
    ];
    let written = run(&report);
    assert_eq!((written.status, written.output.as_str()), (Some(0), ""), "{written:?}");
    let text = fs::read_to_string(file).unwrap();
    for expected in [
        "CREATE MATERIALIZED VIEW best WITH (connector = '?', path = '?', mode = '?') AS
    SELECT auction, channel, MAX(price) AS price FROM large",
        "write changes to …",
        "NOT LIKE '?'",
        "WHERE price &gt; ?",
        "CREATE TABLE bid",
        "aggregate max(price) by auction, channel",
        "<svg",
        "worker 0",
        "complete_p99_us",
        "<h2>Sources</h2>\n<p>None.</p>",
        "engine opened epoch=0",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    for secret in ["secret", "770077", "771177", "800000", "127.0.0.1", served.folder.as_str()] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let again = run(&report);
    assert_eq!(again.status, Some(1));
    assert!(again.errors.contains("there is such a file already"), "{again:?}");
    let missing = folder.path().join("missing.html");
    let missing = missing.to_str().unwrap();
    let unknown =
        run(&["report", "--connect", &served.folder, "--view", "nothing", "--output", missing]);
    assert_eq!(unknown.status, Some(1));
    assert!(unknown.errors.contains("nothing"), "{unknown:?}");
    assert!(!fs::exists(missing).unwrap());
    served.end("TERM");
}

/// Reads lines until one has this text, and returns it.
fn line_with(text: &str, lines: &mut BufReader<ChildStderr>) -> String {
    let mut said = String::new();
    loop {
        let from = said.len();
        assert_ne!(lines.read_line(&mut said).unwrap(), 0, "{said}");
        if said[from..].contains(text) {
            return said[from..].trim_end().to_owned();
        }
    }
}

fn end(mut child: Child, mut lines: BufReader<ChildStderr>) {
    send("INT", &child);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
}

#[test]
fn a_run_with_a_console_serves_it_until_it_is_interrupted() {
    let folder = TempDir::new().unwrap();
    let program = write(&folder, "p.sql", "CREATE MATERIALIZED VIEW best AS SELECT 1 AS price");
    let mut child = Command::new(binary())
        .args(["run", &program, "--console", "--output"])
        .arg(folder.path().join("out"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let socket = line_with("alluvium shell --connect", &mut lines);
    let socket = socket.split_whitespace().last().unwrap().to_owned();
    let address = line_with("http://127.0.0.1:", &mut lines);
    let (address, token) = address.split_once(", with the token of ").unwrap();
    line_with("the console stays until Ctrl-C", &mut lines);
    assert!(folder.path().join("out/best.csv").exists());

    let address = address.strip_prefix("http://").unwrap();
    let token = fs::read_to_string(token).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        token.trim()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let log = run(&["shell", "--connect", &socket, "-c", "SELECT message FROM alluvium.log"]);
    assert!(log.output.contains("engine opened"), "{log:?}");
    end(child, lines);
}
