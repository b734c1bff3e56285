//! The protection log: a file with one JSON object a line for each refusal.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use kruise_admission::Refused;
use serde::Serialize;

/// Name of the file in its directory.
const NAME: &str = "protection.log";
/// Name of the file with older lines.
const OLDER: &str = "protection.log.1";
/// A file of this size becomes the one with older lines, in bytes.
const LARGEST: u64 = 64 << 20;

/// A line.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Line<'a> {
    event: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    /// The name of the user, under the name that readers of the log know.
    user_agent: &'a str,
}

/// The log. Lines that cannot be written to the file go to the log of the manager.
pub struct Log {
    directory: PathBuf,
    largest: u64,
    /// The file and its size in bytes.
    file: Mutex<Option<(File, u64)>>,
}

impl Log {
    /// Opens the log in this directory, which is created if it is absent.
    pub fn open(directory: &Path) -> Self {
        let file = opened(directory);
        if let Err(error) = &file {
            let path = directory.join(NAME);
            tracing::warn!(
                "cannot write {}: {error}; refusals are logged here instead, see --protection-log-path",
                path.display()
            );
        }
        Self {
            directory: directory.to_owned(),
            largest: LARGEST,
            file: Mutex::new(file.ok()),
        }
    }

    /// Writes a line.
    pub fn write(&self, refused: &Refused) {
        let line = Line {
            event: refused.event,
            kind: &refused.kind,
            namespace: &refused.namespace,
            name: &refused.name,
            user_agent: &refused.user,
        };
        // Texts always have a form in JSON.
        let line = serde_json::to_string(&line).unwrap_or_default();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if self.append(&mut file, &line).is_err() {
            tracing::info!("refused: {line}");
        }
    }

    fn append(&self, open: &mut Option<(File, u64)>, line: &str) -> io::Result<()> {
        if open.as_ref().is_some_and(|(_, size)| *size >= self.largest) {
            fs::rename(self.directory.join(NAME), self.directory.join(OLDER))?;
            *open = opened(&self.directory).ok();
        }
        let Some((file, size)) = open else {
            return Err(io::ErrorKind::NotFound.into());
        };
        // One write, so that lines of several processes do not mix.
        let line = format!("{line}\n");
        file.write_all(line.as_bytes())?;
        *size += line.len() as u64;
        Ok(())
    }
}

/// The file, and its size in bytes.
fn opened(directory: &Path) -> io::Result<(File, u64)> {
    fs::create_dir_all(directory)?;
    let path = directory.join(NAME);
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str) -> Refused {
        Refused {
            event: "DeletionProtection",
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            user: "jane".to_owned(),
            budget: None,
        }
    }

    /// An empty directory that is not there yet.
    fn absent(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("kruise-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        directory
    }

    #[test]
    fn a_refusal_is_a_line_with_five_keys_after_what_is_there() {
        let directory = absent("log");
        Log::open(&directory).write(&refused("web"));
        Log::open(&directory).write(&refused("db"));
        let text = fs::read_to_string(directory.join(NAME)).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        let line = |name: &str| {
            format!(
                "{{\"Event\":\"DeletionProtection\",\"Kind\":\"Deployment\",\"Namespace\":\"shop\",\
                 \"Name\":\"{name}\",\"UserAgent\":\"jane\"}}\n"
            )
        };
        assert_eq!(text, line("web") + &line("db"));
    }

    #[test]
    fn a_large_file_makes_room_and_its_lines_are_kept_once() {
        let directory = absent("large-log");
        let mut log = Log::open(&directory);
        log.largest = 1;
        for name in ["a", "b", "c"] {
            log.write(&refused(name));
        }
        let lines = |file: &str| fs::read_to_string(directory.join(file)).unwrap();
        let (older, newer) = (lines(OLDER), lines(NAME));
        fs::remove_dir_all(&directory).unwrap();
        assert!(older.contains("\"b\"") && older.lines().count() == 1, "{older}");
        assert!(newer.contains("\"c\"") && newer.lines().count() == 1, "{newer}");
    }

    #[test]
    fn without_a_directory_refusals_are_written_elsewhere() {
        let log = Log::open(Path::new("/dev/null/log"));
        log.write(&refused("web"));
        assert!(log.file.lock().unwrap().is_none());
    }
}
