//! A root folder as a tar archive. The same entries give the same bytes.

use std::io::Write;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// Who owns an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    /// The administrator.
    Root,
    /// The user without rights, as which images run.
    Nobody,
}

/// Number of the user without rights.
pub(crate) const NOBODY: u64 = 65534;

/// A root folder in the making.
pub(crate) struct Root {
    archive: Builder<Vec<u8>>,
    /// Seconds since 1970 that all entries have as their date.
    date: u64,
}

impl Root {
    pub(crate) fn new(date: u64) -> Self {
        let archive = Builder::new(Vec::new());
        Self { archive, date }
    }

    pub(crate) fn folder(&mut self, name: &str, mode: u32, owner: Owner) -> Result<()> {
        let mut header = self.header(EntryType::Directory, mode, owner);
        Ok(self
            .archive
            .append_data(&mut header, format!("{name}/"), &[][..])?)
    }

    /// A file that everybody may execute.
    pub(crate) fn program(&mut self, name: &str, content: &[u8]) -> Result<()> {
        self.content(name, 0o755, content)
    }

    /// A file that everybody may read.
    pub(crate) fn file(&mut self, name: &str, content: &[u8]) -> Result<()> {
        self.content(name, 0o644, content)
    }

    pub(crate) fn link(&mut self, name: &str, target: &str) -> Result<()> {
        let mut header = self.header(EntryType::Symlink, 0o777, Owner::Root);
        Ok(self.archive.append_link(&mut header, name, target)?)
    }

    /// The archive's bytes.
    pub(crate) fn finish(self) -> Result<Vec<u8>> {
        Ok(self.archive.into_inner()?)
    }

    fn content(&mut self, name: &str, mode: u32, content: &[u8]) -> Result<()> {
        let mut header = self.header(EntryType::Regular, mode, Owner::Root);
        header.set_size(content.len() as u64);
        Ok(self.archive.append_data(&mut header, name, content)?)
    }

    fn header(&self, kind: EntryType, mode: u32, owner: Owner) -> Header {
        let id = match owner {
            Owner::Root => 0,
            Owner::Nobody => NOBODY,
        };
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(id);
        header.set_gid(id);
        header.set_mtime(self.date);
        header.set_size(0);
        header
    }
}

/// These bytes compressed, without date or name, so that the same bytes stay the same.
pub(crate) fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut writer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    Ok(writer.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    fn root() -> Vec<u8> {
        let mut root = Root::new(1_700_000_000);
        root.folder("log", 0o755, Owner::Nobody).unwrap();
        root.program("one", &[b'x'; 700]).unwrap();
        root.file("two", b"content").unwrap();
        root.link("three", "one").unwrap();
        root.finish().unwrap()
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let bytes = root();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let read = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let header = entry.header().clone();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            assert_eq!(header.mtime().unwrap(), 1_700_000_000);
            let path = entry.path().unwrap().display().to_string();
            let (mode, owner) = (header.mode().unwrap(), header.uid().unwrap());
            (
                path,
                mode,
                owner,
                content.len(),
                header.link_name().unwrap().is_some(),
            )
        });
        let entries = [
            ("log/", 0o755, NOBODY, 0, false),
            ("one", 0o755, 0, 700, false),
            ("two", 0o644, 0, 7, false),
            ("three", 0o777, 0, 0, true),
        ];
        let expected =
            entries.map(|(path, mode, owner, size, link)| (path.to_owned(), mode, owner, size, link));
        assert_eq!(read.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_same_entries_are_the_same_bytes_and_compression_is_undone() {
        assert_eq!(root(), root());
        let compressed = compress(&root()).unwrap();
        assert_eq!(compressed, compress(&root()).unwrap());
        let mut back = Vec::new();
        GzDecoder::new(compressed.as_slice())
            .read_to_end(&mut back)
            .unwrap();
        assert_eq!(back, root());
    }
}
