//! Postgres, from its package: a server of our own on a socket in a scratch directory.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

/// Evaluates each expression by itself, so that one which fails loses no other.
const PREPARATION: &str = "
CREATE FUNCTION pg_temp.answer(e text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE t text; v text;
BEGIN
    EXECUTE 'SELECT pg_typeof(x)::text, x::text FROM (SELECT (' || e || ') AS x) AS q' INTO t, v;
    RETURN json_build_array(t, v);
EXCEPTION WHEN OTHERS THEN
    -- Class 42 is of expressions that do not exist, 0A of what is not supported.
    IF left(SQLSTATE, 2) IN ('42', '0A') THEN RETURN json_build_object('refused', SQLERRM); END IF;
    RETURN json_build_object('failed', SQLERRM);
END $$;
CREATE TEMP TABLE expression (id int, e text);
COPY expression FROM STDIN;
";

/// A server that ends with its value.
pub(super) struct Postgres {
    programs: PathBuf,
    folder: tempfile::TempDir,
    server: Child,
}

impl Postgres {
    /// Starts a server by the programs of this folder, as the user `postgres` if we are root, whom it refuses.
    pub(super) fn start(programs: &Path) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let folder = tempfile::Builder::new().prefix("sweep").tempdir().map_err(text)?;
        let user = unprivileged();
        if let Some((id, group)) = user {
            chown(folder.path(), Some(id), Some(group)).map_err(text)?;
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).map_err(text)?;
        let command = |program: &str| {
            let mut command = Command::new(programs.join(program));
            if let Some((id, group)) = user {
                command.uid(id).gid(group);
            }
            command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let data = folder.path().join("data");
        let made = command("initdb")
            .arg("-D")
            .arg(&data)
            .args(["-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"])
            .status()
            .map_err(|error| format!("{}: {error}", programs.join("initdb").display()))?;
        if !made.success() {
            return Err("initdb of Postgres fails".to_owned());
        }
        let server = command("postgres")
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "timezone=UTC"])
            .spawn()
            .map_err(text)?;
        let postgres = Self { programs: programs.to_owned(), folder, server };
        let start = Instant::now();
        while postgres.run("SELECT 1").is_err() {
            if start.elapsed() > Duration::from_secs(30) {
                return Err("Postgres does not start".to_owned());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(postgres)
    }

    /// The answers to all expressions, in order.
    pub(super) fn answers(&self, expressions: &[String]) -> Result<Vec<Json>, String> {
        let mut script = PREPARATION.to_owned();
        for (number, expression) in expressions.iter().enumerate() {
            let escaped =
                expression.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t");
            writeln!(script, "{number}\t{escaped}").map_err(|error| error.to_string())?;
        }
        script +=
            "\\.\nSELECT pg_temp.answer(e) FROM (SELECT e FROM expression ORDER BY id) AS o;\n";
        let output = self.run(&script)?;
        let answers = output
            .lines()
            .filter(|line| line.starts_with(['[', '{']))
            .map(serde_json::from_str)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        match answers.len() == expressions.len() {
            true => Ok(answers),
            false => Err(format!("Postgres answered {} of {}", answers.len(), expressions.len())),
        }
    }

    /// The output of a script.
    fn run(&self, script: &str) -> Result<String, String> {
        let mut child = Command::new(self.programs.join("psql"))
            .arg("-h")
            .arg(self.folder.path())
            .args(["-U", "postgres", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "postgres"])
            .env("PGTZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let Some(mut input) = child.stdin.take() else {
            return Err("psql has no input".to_owned());
        };
        let script = script.to_owned();
        let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        // The errors of psql say more than that it stopped to read.
        let _ = writer.join();
        match output.status.success() {
            true => String::from_utf8(output.stdout).map_err(|error| error.to_string()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let stop = self.folder.path().join("data");
        let mut command = Command::new(self.programs.join("pg_ctl"));
        if let Some((id, group)) = unprivileged() {
            command.uid(id).gid(group);
        }
        let stopped = command
            .current_dir(self.folder.path())
            .arg("-D")
            .arg(stop)
            .args(["-m", "immediate", "stop"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !stopped.is_ok_and(|status| status.success()) {
            let _ = self.server.kill();
        }
        let _ = self.server.wait();
    }
}

/// The ids of the user `postgres` and its group if we are root.
fn unprivileged() -> Option<(u32, u32)> {
    let is_root = fs::metadata("/proc/self").ok().is_some_and(|own| {
        use std::os::unix::fs::MetadataExt as _;
        own.uid() == 0
    });
    if !is_root {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
