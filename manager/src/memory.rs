//! How much memory the process may have: the smallest limit of its control groups, of those around them, and of
//! `GOMEMLIMIT`, which limits programs in Go such as OpenKruise's manager.

use std::path::Path;

/// Numbers from here on are no limit: groups of version 1 without one have almost the largest number.
const NONE: usize = 1 << 50;

/// The limit in bytes; `None` if there is none. `read` returns the text of a file, `wanted` is that of `GOMEMLIMIT`.
pub(super) fn limit(read: &dyn Fn(&Path) -> Option<String>, wanted: &str) -> Option<usize> {
    let limits = [of_groups(read), bytes(wanted)];
    limits.into_iter().flatten().min()
}

/// A number of bytes as Go reads it, such as `512MiB`; `None` for `off` and for what is no number.
fn bytes(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let shift = match unit {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(1 << shift)
}

fn of_groups(read: &dyn Fn(&Path) -> Option<String>) -> Option<usize> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let limits = groups.lines().filter_map(|line| {
        let (_, group) = line.split_once(':')?;
        let (controllers, path) = group.split_once(':')?;
        let (folder, file) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max")
        } else if controllers.split(',').any(|one| one == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            return None;
        };
        smallest(read, Path::new(folder), path, file)
    });
    limits.min()
}

/// The smallest limit from the group at this path up to the first one. In a container the path may be one of the
/// node, which is not there; the first group is the container's then.
fn smallest(read: &dyn Fn(&Path) -> Option<String>, first: &Path, path: &str, file: &str) -> Option<usize> {
    let group = first.join(path.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|group| group.starts_with(first));
    let limits = groups.filter_map(|group| {
        let text = read(&group.join(file))?;
        text.trim().parse().ok().filter(|limit| *limit < NONE)
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit of a process in these groups, where these files are.
    fn of(groups: &str, files: &[(&str, &str)]) -> Option<usize> {
        of_groups(&|path| match path.to_str() {
            Some("/proc/self/cgroup") => Some(groups.to_owned()),
            path => files
                .iter()
                .find(|(name, _)| Some(*name) == path)
                .map(|(_, text)| (*text).to_owned()),
        })
    }

    #[test]
    fn the_smallest_limit_of_the_groups_counts() {
        let files = [
            ("/sys/fs/cgroup/a/memory.max", "1073741824\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "536870912\n"),
            ("/sys/fs/cgroup/a/b/c/memory.max", "max\n"),
        ];
        assert_eq!(of("0::/a/b/c\n", &files), Some(512 << 20));
        assert_eq!(of("0::/a\n", &files), Some(1 << 30));
        assert_eq!(of("0::/other\n", &files), None);
    }

    #[test]
    fn a_container_sees_its_own_group_in_the_first_place() {
        let files = [("/sys/fs/cgroup/memory.max", "268435456\n")];
        assert_eq!(of("0::/\n", &files), Some(256 << 20));
        assert_eq!(of("0::/kubepods/pod1\n", &files), Some(256 << 20));
        let older = [
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n"),
            (
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
        ];
        let groups = "5:cpu,cpuacct:/docker\n4:memory:/docker\n0::/docker\n";
        assert_eq!(of(groups, &older), Some(128 << 20));
        assert_eq!(of("5:cpu:/docker\n", &older), None);
        assert_eq!(limit(&|_| None, ""), None);
    }

    #[test]
    fn a_lower_limit_may_be_wanted() {
        let read = |path: &Path| match path.to_str() {
            Some("/proc/self/cgroup") => Some("0::/".to_owned()),
            _ => Some("1073741824".to_owned()),
        };
        for (wanted, limit_in_mebibytes) in [
            ("", 1024),
            ("off", 1024),
            ("512MiB", 512),
            ("2GiB", 1024),
            ("1048576", 1),
        ] {
            assert_eq!(limit(&read, wanted), Some(limit_in_mebibytes << 20), "{wanted}");
        }
    }
}
