//! Parts that benchmarks share: running the binary from outside, the time on processors, [`grouped`] rows and [`tpch`].

pub mod grouped;
pub mod tpch;

use std::error::Error;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

/// Any error, as text.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The binary's report on a program that it ran to the end.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The results of its queries, as CSV, or the kept part of them.
    pub printed: String,
    /// Peak resident memory in bytes.
    pub peak: u64,
    /// Seconds from start to end.
    pub seconds: f64,
}

/// Runs a program until its sources are exhausted, with a memory budget in bytes.
///
/// # Errors
/// If it fails. It has written its own messages to standard error.
pub fn run_program(
    binary: &Path,
    folder: &Path,
    program: &str,
    workers: u32,
    budget: u64,
) -> Result<Finished> {
    run_program_to(binary, folder, program, workers, budget, |mut output| {
        let mut printed = String::new();
        output.read_to_string(&mut printed)?;
        Ok(printed)
    })
}

/// As [`run_program`]; `read` reads the results of its queries, as fast as it likes, and returns the part to keep.
///
/// # Errors
/// If it, or `read`, fails.
pub fn run_program_to(
    binary: &Path,
    folder: &Path,
    program: &str,
    workers: u32,
    budget: u64,
    read: impl FnOnce(ChildStdout) -> Result<String>,
) -> Result<Finished> {
    let (path, stats) = (folder.join("program.sql"), folder.join("stats.json"));
    fs::write(&path, program)?;
    let mut child = Command::new(binary)
        .args(["run", "--format", "csv"])
        .args(["--workers", &workers.to_string()])
        .args(["--memory", &budget.to_string()])
        .arg("--stats")
        .args([&stats, &path])
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let printed = child.stdout.take().map_or_else(|| Ok(String::new()), read)?;
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("the program ended with {status}").into());
    }
    let stats = fs::read_to_string(&stats)?;
    Ok(Finished {
        printed,
        peak: number(&stats, "peak_rss_bytes")? as u64,
        seconds: number(&stats, "elapsed_s")?,
    })
}

/// The arguments of a benchmark; `None` if `cargo test` runs it to see that it starts.
pub fn arguments() -> Option<Vec<String>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.len();
    arguments.retain(|argument| argument != "--bench");
    (arguments.len() < count).then_some(arguments)
}

/// The time that the process has spent on processors so far, in seconds.
pub fn processors() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A number of a JSON object.
fn number(json: &str, name: &str) -> Result<f64> {
    let behind = json.split_once(&format!("\"{name}\":")).ok_or("no statistics")?.1;
    let text = behind.trim_start().split([',', '}', '\n']).next().unwrap_or_default();
    Ok(text.trim().parse()?)
}

/// A folder for temporary files that is removed at the end.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// # Errors
    /// If it cannot be created.
    pub fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("alluvium-{name}-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Files that cannot be removed are left to the system.
        let _ = fs::remove_dir_all(&self.0);
    }
}
