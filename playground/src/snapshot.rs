//! The file of `--save` and `--load`.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use kruise_sim::http::Live;
use kruise_sim::{Api, Config};
use kruise_tour::Screen;

use super::cluster::{self, Origin};

/// How every snapshot begins.
const START: &str = "{\"format\":\"kruise-sim snapshot\"";
/// Longest first line of a snapshot, in bytes.
const FIRST_LINE: u64 = 1024;

/// Where a playground begins: with the server of a file, if there is one, or with so many nodes.
pub(super) fn origin(file: Option<&Path>, nodes: u16) -> anyhow::Result<Origin> {
    Ok(match file {
        Some(path) => Origin::Saved(Box::new(load(path, &cluster::config())?)),
        None => Origin::New { nodes },
    })
}

/// Reads a server from a file.
fn load(path: &Path, config: &Config) -> anyhow::Result<Api> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("--load={} cannot be read", path.display()))?;
    Api::restore(config, &text).with_context(|| format!("--load={} cannot be used", path.display()))
}

/// A new file that only this user can read: whatever is in the playground's Secrets is in it.
fn create(path: &Path) -> std::io::Result<File> {
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Fails if there is a file that is no snapshot.
fn check(path: &Path) -> anyhow::Result<()> {
    let unreadable = || format!("--save={} cannot be read", path.display());
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.with_context(unreadable)?,
    };
    let mut first = Vec::new();
    let mut start = BufReader::new(file.take(FIRST_LINE));
    start.read_until(b'\n', &mut first).with_context(unreadable)?;
    if !first.is_empty() && !first.starts_with(START.as_bytes()) {
        bail!(
            "--save={}: the file is not a snapshot and stays as it is; name another one",
            path.display()
        );
    }
    Ok(())
}

/// Where a snapshot is going to be written. That it can be is found out before anything is started.
#[derive(Debug)]
pub(super) struct Target {
    path: PathBuf,
    /// Written first, then given the name of the file, so that no crash leaves half a snapshot.
    draft: PathBuf,
    /// The draft is all there is.
    keep: bool,
}

impl Target {
    /// Checks the file: it must be new, or a snapshot.
    pub(super) fn new(path: &Path) -> anyhow::Result<Self> {
        check(path)?;
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}", std::process::id()));
        let draft = PathBuf::from(draft);
        create(&draft).with_context(|| {
            format!(
                "--save={} cannot be written: {} cannot be created; name a file in a folder you may write to",
                path.display(),
                draft.display()
            )
        })?;
        Ok(Self {
            path: path.to_owned(),
            draft,
            keep: false,
        })
    }

    /// Writes the snapshot; returns its size in bytes. If the file has become something else meanwhile, that stays,
    /// and the draft stays beside it.
    fn write(&mut self, snapshot: &str) -> anyhow::Result<usize> {
        let unwritable = || format!("--save={} cannot be written", self.path.display());
        let write = || {
            // the name was taken when this began; whatever has it now is not ours to write through
            std::fs::remove_file(&self.draft)?;
            let mut file = create(&self.draft)?;
            file.write_all(snapshot.as_bytes())?;
            file.sync_all()
        };
        write().with_context(unwritable)?;
        if let Err(error) = check(&self.path) {
            self.keep = true;
            return Err(error.context(format!("what was stored is in {}", self.draft.display())));
        }
        std::fs::rename(&self.draft, &self.path).with_context(unwritable)?;
        Ok(snapshot.len())
    }

    /// Saves what is stored now, and tells the reader.
    pub(super) fn save(mut self, live: &Live) -> anyhow::Result<()> {
        let snapshot = live.with_world(|world| world.api().snapshot());
        let size = self.write(&snapshot)?;
        Screen::of_the_reader(None).text(&format!("saved {size} bytes in {}", self.path.display()))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.keep {
            // It has the other name by now, or nothing was to be saved.
            let _ = std::fs::remove_file(&self.draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("kruise-snapshot-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_snapshot_is_written_over_a_snapshot_and_over_nothing_else() {
        let (path, config) = (file("own"), Config::default());
        let text = Api::new(&config, Timestamp::UNIX_EPOCH).snapshot();
        for _ in 0..2 {
            Target::new(&path).unwrap().write(&text).unwrap();
        }
        assert_eq!(load(&path, &config).unwrap().snapshot(), text);
        std::fs::write(&path, "my notes\n").unwrap();
        let error = Target::new(&path).unwrap_err().to_string();
        assert!(error.contains("stays as it is"), "{error}");
        let error = format!("{:#}", load(&path, &config).unwrap_err());
        assert!(error.contains("not a snapshot"), "{error}");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_known_before_it_is_needed() {
        let error = Target::new(&file("missing").join("file")).unwrap_err();
        assert!(error.to_string().contains("cannot be written"), "{error:#}");
    }

    #[test]
    fn a_target_that_nothing_was_written_to_leaves_nothing() {
        let path = file("unused");
        let target = Target::new(&path).unwrap();
        let draft = target.draft.clone();
        assert!(draft.exists());
        drop(target);
        assert!(!path.exists() && !draft.exists());
    }

    #[test]
    fn a_folder_is_named_with_the_option() {
        let error = format!("{:#}", Target::new(&std::env::temp_dir()).unwrap_err());
        assert!(
            error.contains("--save=") && error.contains("directory"),
            "{error}"
        );
    }

    #[test]
    fn a_draft_is_written_over_nothing() {
        let path = file("taken");
        let target = Target::new(&path).unwrap();
        let again = format!("{:#}", Target::new(&path).unwrap_err());
        assert!(again.contains(target.draft.to_str().unwrap()), "{again}");
        assert!(target.draft.exists(), "it is still the first one's");
    }

    #[test]
    fn a_file_that_became_something_else_stays_and_so_does_what_was_stored() {
        let path = file("meanwhile");
        let mut target = Target::new(&path).unwrap();
        let draft = target.draft.clone();
        std::fs::write(&path, "my notes\n").unwrap();
        let error = format!("{:#}", target.write("stored").unwrap_err());
        assert!(error.contains(draft.to_str().unwrap()), "{error}");
        drop(target);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "my notes\n");
        assert_eq!(std::fs::read_to_string(&draft).unwrap(), "stored");
        std::fs::remove_file(path).unwrap();
        std::fs::remove_file(draft).unwrap();
    }
}
