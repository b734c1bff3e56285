//! Docker's configuration files on this machine.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::DockerConfig;
use crate::docker::Parse;

/// How long what was read is taken for what is there.
const FRESH: Duration = Duration::from_mins(5);

/// The configuration files of the folders that the kubelet looks into. The first file that can be read counts:
/// `.docker/config.json` of each folder in turn, then `.dockercfg` of each.
#[derive(Clone, Debug)]
pub struct DockerFiles {
    folders: Vec<PathBuf>,
    read: Option<Read>,
}

#[derive(Clone, Debug)]
struct Read {
    at: Duration,
    config: DockerConfig,
    errors: Vec<FileError>,
}

/// A file that is there and cannot be used. Does not say what it holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct FileError {
    path: PathBuf,
    why: String,
}

/// A file's name in a folder, and how it is read.
const FORMS: [(&str, Parse); 2] = [
    (".docker/config.json", DockerConfig::from_config_json),
    (".dockercfg", DockerConfig::from_dockercfg),
];

impl DockerFiles {
    /// The files of the home folder, if there is one, and of `/`.
    pub fn of_home(home: Option<PathBuf>) -> Self {
        let root = PathBuf::from("/");
        Self::new(home.into_iter().chain([root]).collect())
    }

    /// The files of these folders.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders, read: None }
    }

    /// What the files hold, read at most five minutes before `now`, and the files that were skipped because they cannot
    /// be used. Reads files, which blocks.
    pub fn config(&mut self, now: Duration) -> (&DockerConfig, &[FileError]) {
        let is_fresh = |read: &Read| now.saturating_sub(read.at) < FRESH;
        if !self.read.as_ref().is_some_and(is_fresh) {
            self.read = None;
        }
        let folders = &self.folders;
        let read = self.read.get_or_insert_with(|| {
            let (config, errors) = first(folders, |path| std::fs::read(path));
            Read {
                at: now,
                config,
                errors,
            }
        });
        (&read.config, &read.errors)
    }
}

/// The first file that can be read.
fn first(folders: &[PathBuf], read: impl Fn(&Path) -> io::Result<Vec<u8>>) -> (DockerConfig, Vec<FileError>) {
    let mut errors = Vec::new();
    for (name, parse) in FORMS {
        for path in folders.iter().map(|folder| folder.join(name)) {
            let why = match read(&path) {
                Ok(bytes) => match parse(&bytes) {
                    Ok(config) => return (config, errors),
                    Err(error) => error.to_string(),
                },
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => error.to_string(),
            };
            errors.push(FileError { path, why });
        }
    }
    (DockerConfig::default(), errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found among these files.
    fn found(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let read = |path: &Path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            let text = file.map(|(_, text)| text.as_bytes().to_vec());
            text.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        };
        let (config, errors) = first(&["/home".into(), "/".into()], read);
        (
            config.0.into_keys().collect(),
            errors.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn the_first_file_counts_and_new_ones_are_before_old_ones() {
        let files = [
            ("/home/.docker/config.json", r#"{"auths": {"a": {}}}"#),
            ("/.docker/config.json", r#"{"auths": {"b": {}}}"#),
            ("/home/.dockercfg", r#"{"c": {}}"#),
            ("/.dockercfg", r#"{"d": {}}"#),
        ];
        for (index, expected) in ["a", "b", "c", "d"].into_iter().enumerate() {
            let (locations, errors) = found(&files[index..]);
            assert_eq!(locations, [expected]);
            assert!(errors.is_empty());
        }
        assert_eq!(found(&[]), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_malformed_file_is_reported_and_the_next_one_counts() {
        let files = [
            ("/home/.docker/config.json", "hunter2"),
            ("/.dockercfg", r#"{"d": {}}"#),
        ];
        let (locations, errors) = found(&files);
        assert_eq!(locations, ["d"]);
        assert_eq!(
            errors,
            ["/home/.docker/config.json: malformed at line 1, column 1"]
        );
    }

    #[test]
    fn files_are_read_again_after_five_minutes() {
        let folder = std::env::temp_dir().join(format!("image-credentials-{}", std::process::id()));
        let write = |location: &str| {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(".dockercfg"), format!(r#"{{"{location}": {{}}}}"#)).unwrap();
        };
        let mut files = DockerFiles::new(vec![folder.clone()]);
        let mut at = |seconds| {
            let (config, errors) = files.config(Duration::from_secs(seconds));
            assert!(errors.is_empty());
            config.0.keys().cloned().collect::<Vec<_>>()
        };
        write("a");
        assert_eq!(at(7), ["a"]);
        write("b");
        assert_eq!(at(306), ["a"]);
        assert_eq!(at(307), ["b"]);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(at(606), ["b"]);
        assert!(at(607).is_empty());
    }
}
