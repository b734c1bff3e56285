//! Standard output and standard error, whose readers may be gone: `kruise manifests | head`.
//!
//! The macros of the standard library panic then, so the lints `print_stdout` and `print_stderr` forbid them.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// Prints a text. A reader that has gone away has seen what it wanted: that is no error.
///
/// # Errors
/// Fails if the output cannot be written for another reason, such as a full disk.
pub fn print(text: &str) -> io::Result<()> {
    written(&mut io::stdout().lock(), text)
}

fn written(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints a line to standard error. If nobody can read it, nothing is left to be done about it.
pub fn report(line: impl Display) {
    let _lost = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails with an error of this kind.
    struct Fails(ErrorKind);

    impl Write for Fails {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is_one() {
        assert!(written(&mut Fails(ErrorKind::BrokenPipe), "x").is_ok());
        let full = written(&mut Fails(ErrorKind::StorageFull), "x");
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
    }
}
