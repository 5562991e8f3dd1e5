//! What can be said of a configuration before anything is opened.

use std::fs;
use std::net::SocketAddr;
use std::path::{self, Path, PathBuf};

use alluvium::FileAccess;
use alluvium_server::Tls;

use super::options::ServeArgs;

/// What a configuration has that was read to be checked.
pub(crate) struct Checked {
    /// `None` without a certificate.
    pub(crate) tls: Option<Tls>,
    /// The files that statements of clients may use.
    pub(crate) files: FileAccess,
}

/// Checks a configuration as far as that can be done without opening anything, and returns the first thing that is wrong.
pub(crate) fn check(args: &ServeArgs) -> Result<Checked, String> {
    if let Some(program) = &args.program
        && let Err(error) = fs::metadata(program)
    {
        return Err(format!("program: cannot read {}: {error}", program.display()));
    }
    if let Some(socket) = &args.socket
        && !socket.is_dir()
    {
        return Err(format!("socket: {} is no directory", socket.display()));
    }
    let tls = match (&args.tls_certificate, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(Tls::read(certificate, key).map_err(|error| format!("tls_certificate: {error}"))?)
        }
        _ => None,
    };
    #[cfg(feature = "remote")]
    args.open.journal.place()?;
    let mut addresses = args.pg.iter().chain(&args.http).chain(&args.flight);
    if let Some(address) = addresses.find(|address| is_exposed(address))
        && tls.is_none()
        && !args.insecure
    {
        return Err(format!(
            "{address} can be reached from other machines, and connections are not encrypted: set tls_certificate and tls_key, listen on a loopback address, such as 127.0.0.1, or set insecure"
        ));
    }
    let files = match args.files.as_slice() {
        [] => FileAccess::Nothing,
        directories => FileAccess::Below(directories_of_files(args, directories)?),
    };
    Ok(Checked { tls, files })
}

fn is_exposed(address: &SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// The directories whose files clients may use. Nothing of the server's own is below them.
fn directories_of_files(args: &ServeArgs, directories: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let state = args.open.state.directory.as_deref().map(Path::new);
    let own = vec![
        ("state", state),
        ("socket", args.socket.as_deref()),
        ("config", args.config.as_deref()),
        ("program", args.program.as_deref()),
        ("tls_certificate", args.tls_certificate.as_deref()),
        ("tls_key", args.tls_key.as_deref()),
    ];
    #[cfg(feature = "remote")]
    let own = [own, args.open.journal.files().to_vec()].concat();
    let mut roots = Vec::new();
    for directory in directories {
        let name = directory.display();
        let root = directory.canonicalize().map_err(|error| format!("files: {name}: {error}"))?;
        if !root.is_dir() {
            return Err(format!("files: {name} is no directory"));
        }
        for (key, path) in &own {
            let Some(path) = path.map(real) else { continue };
            if path.starts_with(&root) || root.starts_with(&path) {
                return Err(format!(
                    "files: clients could use the server's own files, as {name} is not apart from {key}, {}: keep these in another directory",
                    path.display()
                ));
            }
        }
        roots.push(root);
    }
    Ok(roots)
}

/// A path without symbolic links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let absolute = path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let known = absolute.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match known {
        Some((above, known)) => match absolute.strip_prefix(above) {
            Ok(rest) if !rest.as_os_str().is_empty() => known.join(rest),
            _ => known,
        },
        None => absolute,
    }
}
