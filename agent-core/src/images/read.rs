//! Reads of the runtime that serve many tags.

/// A read that is made once for all who ask before it begins. Reads are counted, and one is made at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedRead {
    /// Reads that began.
    begun: u64,
    is_running: bool,
    is_wanted: bool,
}

impl SharedRead {
    /// Asks for a read that begins after this call; returns its number.
    pub(super) fn ask(&mut self) -> u64 {
        self.is_wanted = true;
        self.begun.saturating_add(1)
    }

    /// Shall a read begin now?
    pub(super) fn begin(&mut self) -> bool {
        let begins = self.is_wanted && !self.is_running;
        if begins {
            self.begun = self.begun.saturating_add(1);
            self.is_running = true;
            self.is_wanted = false;
        }
        begins
    }

    /// The read has ended; returns its number.
    pub(super) fn end(&mut self) -> u64 {
        self.is_running = false;
        self.begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_serves_those_who_asked_before_it_began() {
        let mut read = SharedRead::default();
        assert!(!read.begin());
        assert_eq!([read.ask(), read.ask()], [1, 1]);
        assert!(read.begin());
        assert_eq!(read.ask(), 2);
        assert!(!read.begin(), "one at a time");
        assert_eq!(read.end(), 1);
        assert!(read.begin());
        assert_eq!(read.end(), 2);
        assert!(!read.begin());
    }
}
