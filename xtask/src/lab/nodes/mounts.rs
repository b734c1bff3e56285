//! What is mounted below a folder.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::tool;

/// Unmounts everything below `folder`; fails if something stays.
pub(super) fn clear(folder: &Path) -> Result<()> {
    for mount in below(folder)? {
        tool::run("umount", &["--lazy", &mount.display().to_string()])?;
    }
    match below(folder)?.first() {
        Some(mount) => bail!("{} is still mounted", mount.display()),
        None => Ok(()),
    }
}

/// Removes a folder with what is mounted in it. Never reaches into a mount: what is behind one is not ours.
pub(super) fn remove(folder: &Path) -> Result<()> {
    clear(folder)?;
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            bail!("cannot remove {}: {error}", folder.display())
        }
        _ => Ok(()),
    }
}

fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(points(&std::fs::read_to_string("/proc/self/mounts")?, folder))
}

/// Mount points below a folder, the last one first, which is never below another one that follows it.
fn points(table: &str, folder: &Path) -> Vec<PathBuf> {
    let all = table.lines().filter_map(|line| line.split(' ').nth(1));
    let mut points: Vec<PathBuf> = all
        .map(unescaped)
        .filter(|point| point.starts_with(folder) && point != folder)
        .collect();
    points.reverse();
    points
}

/// Blanks and the like are written as three octal digits.
fn unescaped(word: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_below_a_folder_are_found_last_first_and_others_are_not() {
        let table = "overlay / overlay rw 0 0\ntmpfs /a/n tmpfs rw 0 0\ntmpfs /a/n/x\\040y tmpfs rw 0 0\n\
                     tmpfs /a/n/x\\040y/z tmpfs rw 0 0\ntmpfs /a/node tmpfs rw 0 0\n";
        let found = points(table, Path::new("/a/n"));
        assert_eq!(found, ["/a/n/x y/z", "/a/n/x y"].map(PathBuf::from));
    }
}
