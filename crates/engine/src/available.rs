//! The memory available to the process, from which the default budget is computed.

/// Four fifths of the memory of the machine, or of the smallest limit of the control groups of this process if that is
/// less. `None` where the system does not report it.
pub(crate) fn memory() -> Option<usize> {
    let bytes = system::memory()?;
    usize::try_from(bytes / 5 * 4).ok()
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn memory() -> Option<u64> {
        None
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::path::Path;

    use procfs::process::Process;
    use procfs::{Current, Meminfo};

    pub(super) fn memory() -> Option<u64> {
        let machine = Meminfo::current().ok().map(|memory| memory.mem_total);
        [machine, control_groups()].into_iter().flatten().min()
    }

    /// The smallest limit of the control groups (version 2) of this process.
    fn control_groups() -> Option<u64> {
        let groups = Process::myself().ok()?.cgroups().ok()?;
        let group = groups.into_iter().find(|group| group.hierarchy == 0)?;
        smallest_limit(Path::new("/sys/fs/cgroup"), group.pathname.strip_prefix('/')?)
    }

    /// The smallest limit of the group at `path` below `root` and of its ancestors.
    pub(super) fn smallest_limit(root: &Path, path: &str) -> Option<u64> {
        let limit = |group: &Path| {
            let text = fs::read_to_string(group.join("memory.max")).ok()?;
            // "max" is no limit.
            text.trim().parse::<u64>().ok()
        };
        let group = root.join(path);
        group.ancestors().take_while(|group| group.starts_with(root)).filter_map(limit).min()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::memory;
    use super::system::smallest_limit;

    #[test]
    fn the_smallest_limit_of_a_group_and_its_ancestors_applies() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let group = root.path().join("a/b/c");
        fs::create_dir_all(&group).expect("directories can be made");
        let write = |path: &str, text: &str| fs::write(root.path().join(path), text);
        assert_eq!(smallest_limit(root.path(), "a/b/c"), None);
        write("a/b/c/memory.max", "max\n").expect("files can be written");
        assert_eq!(smallest_limit(root.path(), "a/b/c"), None);
        write("a/b/memory.max", "3000000\n").expect("files can be written");
        write("a/memory.max", "9000000\n").expect("files can be written");
        assert_eq!(smallest_limit(root.path(), "a/b/c"), Some(3_000_000));
        assert_eq!(smallest_limit(root.path(), "a"), Some(9_000_000));
        // A group that is not visible, as in a container.
        assert_eq!(smallest_limit(root.path(), "elsewhere"), None);
    }

    #[test]
    fn the_machine_reports_its_memory() {
        assert!(memory().is_some_and(|bytes| bytes > 16 << 20));
    }
}
