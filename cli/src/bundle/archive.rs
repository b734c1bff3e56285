//! The archive: files in one folder, packed as `.tar.gz` in memory, so that an error leaves no half of it behind.

use std::io::Write as _;

use anyhow::Context;
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;

/// The folder of all files.
const FOLDER: &str = "kruise-bundle";

/// An archive that is being written.
pub(super) struct Archive {
    tar: tar::Builder<GzEncoder<Vec<u8>>>,
    /// Modification time of the files, in seconds since 1970.
    time: u64,
}

impl Archive {
    pub(super) fn new(time: u64) -> Self {
        Self {
            tar: tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default())),
            time,
        }
    }

    /// Adds a file.
    pub(super) fn text(&mut self, path: &str, text: &[u8]) -> anyhow::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(text.len())?);
        header.set_mode(0o644);
        header.set_mtime(self.time);
        let path = format!("{FOLDER}/{path}");
        self.tar
            .append_data(&mut header, &path, text)
            .with_context(|| format!("cannot pack {path}"))
    }

    /// Adds a file of JSON for people: with line breaks.
    pub(super) fn json(&mut self, path: &str, content: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec_pretty(content)?;
        text.push(b'\n');
        self.text(path, &text)
    }

    /// The bytes of the archive.
    pub(super) fn finish(self) -> anyhow::Result<Vec<u8>> {
        let mut gzip = self.tar.into_inner()?;
        gzip.flush()?;
        Ok(gzip.finish()?)
    }
}

/// A name of the API as the name of a file.
pub(super) fn file_name(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    name.chars()
        .map(|letter| if is_plain(letter) { letter } else { '_' })
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::{collections::BTreeMap, io::Read as _};

    use super::*;

    /// The files of an archive with their contents.
    pub(in crate::bundle) fn unpacked(bytes: &[u8]) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            files.insert(path, text);
        }
        files
    }

    #[test]
    fn files_come_out_as_they_went_in_with_names_of_any_length() {
        let long = format!("explain/{}.txt", "n".repeat(300));
        let mut archive = Archive::new(1);
        archive.text("a.txt", b"text").unwrap();
        archive.text(&long, b"").unwrap();
        let files = unpacked(&archive.finish().unwrap());
        assert_eq!(files["kruise-bundle/a.txt"], "text");
        assert_eq!(files[&format!("kruise-bundle/{long}")], "");
    }

    #[test]
    fn a_name_of_the_api_stays_in_its_folder() {
        assert_eq!(file_name("clonesets.shop.web-1"), "clonesets.shop.web-1");
        assert_eq!(file_name("../x y"), ".._x_y");
    }
}
