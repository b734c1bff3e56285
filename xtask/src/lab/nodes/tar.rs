//! The little of the tar format that an image layer needs: folders, files and links with short names.

use anyhow::{Result, bail};

const BLOCK: usize = 512;

/// An archive in the making. The same entries give the same bytes.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
}

impl Archive {
    pub(super) fn folder(&mut self, name: &str) -> Result<()> {
        self.entry(name, b'5', 0o755, "", &[])
    }

    /// A file that everybody may execute.
    pub(super) fn program(&mut self, name: &str, content: &[u8]) -> Result<()> {
        self.entry(name, b'0', 0o755, "", content)
    }

    pub(super) fn file(&mut self, name: &str, content: &[u8]) -> Result<()> {
        self.entry(name, b'0', 0o644, "", content)
    }

    pub(super) fn link(&mut self, name: &str, target: &str) -> Result<()> {
        self.entry(name, b'2', 0o777, target, &[])
    }

    /// The archive's bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }

    fn entry(&mut self, name: &str, kind: u8, mode: u32, target: &str, content: &[u8]) -> Result<()> {
        if name.len() > 100 || target.len() > 100 {
            bail!("the name is too long for a tar header: {name}");
        }
        let mut header = Vec::with_capacity(BLOCK);
        header.extend(padded(name.as_bytes(), 100));
        header.extend(format!("{mode:07o}\0").bytes());
        header.extend(b"0000000\x000000000\0");
        header.extend(format!("{:011o}\0", content.len()).bytes());
        header.extend(b"00000000000\0");
        // The checksum counts itself as blanks.
        header.extend(b"        ");
        header.push(kind);
        header.extend(padded(target.as_bytes(), 100));
        header.extend(b"ustar\x0000");
        header.resize(BLOCK, 0);
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        let sum = format!("{sum:06o}\0 ");
        for (place, byte) in header.iter_mut().skip(148).zip(sum.bytes()) {
            *place = byte;
        }
        self.bytes.extend(header);
        self.bytes.extend(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        Ok(())
    }
}

fn padded(text: &[u8], width: usize) -> Vec<u8> {
    let mut field = text.to_vec();
    field.resize(width, 0);
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::nodes::tool;

    #[test]
    fn the_tar_program_reads_what_was_written() {
        let mut archive = Archive::default();
        archive.folder("bin").unwrap();
        archive.program("bin/one", &[b'x'; 700]).unwrap();
        archive.file("two", b"content").unwrap();
        archive.link("bin/three", "/bin/one").unwrap();
        assert!(archive.file(&"n".repeat(101), b"").is_err());
        let bytes = archive.finish();
        let listed = tool::run_with_input("tar", &["--list", "--verbose", "--file", "-"], &bytes).unwrap();
        let lines: Vec<Vec<&str>> = listed
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let shown: Vec<(&str, &str)> = lines
            .iter()
            .map(|line| {
                (
                    line[0],
                    *line
                        .iter()
                        .find(|w| w.contains("bin") || w.contains("two"))
                        .unwrap(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("drwxr-xr-x", "bin"),
                ("-rwxr-xr-x", "bin/one"),
                ("-rw-r--r--", "two"),
                ("lrwxrwxrwx", "bin/three"),
            ]
        );
        let content = ["--extract", "--to-stdout", "--file", "-", "two"];
        assert_eq!(tool::run_with_input("tar", &content, &bytes).unwrap(), "content");
    }
}
