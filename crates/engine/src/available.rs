//! The default memory budget of a process.

use std::fs;
use std::path::Path;

/// Four fifths of the memory of the machine, or of the smallest limit of the control groups that the process is in.
/// `None` on a system that reports neither.
pub(crate) fn memory() -> Option<usize> {
    let all = [machine(), control_groups()];
    let bytes = all.into_iter().flatten().min()?;
    usize::try_from(bytes / 5 * 4).ok()
}

/// The memory of the machine.
fn machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(1024 * line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?)
}

/// The least limit of the control groups (version 2) that this process is in.
fn control_groups() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    least(Path::new("/sys/fs/cgroup"), path)
}

/// The least limit of the group at `path` below `root`, and of those it is in.
fn least(root: &Path, path: &str) -> Option<u64> {
    let limit = |group: &Path| {
        let text = fs::read_to_string(group.join("memory.max")).ok()?;
        // "max" is no limit.
        text.trim().parse::<u64>().ok()
    };
    let group = root.join(path);
    group.ancestors().take_while(|group| group.starts_with(root)).filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_a_group_and_those_it_is_in_holds() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let group = root.path().join("a/b/c");
        fs::create_dir_all(&group).expect("directories can be made");
        let write = |path: &str, text: &str| fs::write(root.path().join(path), text);
        assert_eq!(least(root.path(), "a/b/c"), None);
        write("a/b/c/memory.max", "max\n").expect("files can be written");
        assert_eq!(least(root.path(), "a/b/c"), None);
        write("a/b/memory.max", "3000000\n").expect("files can be written");
        write("a/memory.max", "9000000\n").expect("files can be written");
        assert_eq!(least(root.path(), "a/b/c"), Some(3_000_000));
        assert_eq!(least(root.path(), "a"), Some(9_000_000));
        // A group that is not visible here, as in a container.
        assert_eq!(least(root.path(), "elsewhere"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_machine_has_some_memory() {
        assert!(memory().is_some_and(|bytes| bytes > 16 << 20));
    }
}
