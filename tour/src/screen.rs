//! What the reader sees: plain lines, in order, the same in a terminal and in a file. Only a terminal gets bold print,
//! and while it waits a table that changes in place.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::Result;

use crate::act::Line;
use crate::story::Claim;

/// What may be printed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Print {
    /// Lines, nothing else: a file, or a terminal that wants no colour.
    Plain,
    /// Control sequences of a terminal.
    Terminal,
}

/// A terminal cuts long lines.
const UNWRAPPED: &str = "\x1b[?7l";
/// A terminal continues long lines in the next row.
const WRAPPED: &str = "\x1b[?7h";

/// Where the tour is printed.
#[derive(Debug)]
pub struct Screen<W> {
    out: W,
    print: Print,
    /// Lines from the keyboard, if the reader is waited for.
    keyboard: Option<Receiver<()>>,
    /// What changes in place at the moment.
    live: String,
}

impl Screen<io::Stdout> {
    /// Standard output; bold in a terminal unless `NO_COLOR` is set.
    pub fn of_the_reader(keyboard: Option<Receiver<()>>) -> Self {
        let out = io::stdout();
        let bold = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let print = if bold { Print::Terminal } else { Print::Plain };
        Self {
            out,
            print,
            keyboard,
            live: String::new(),
        }
    }
}

/// A message for each line of standard input; the channel closes with it.
pub fn keyboard() -> Receiver<()> {
    let (sender, receiver) = mpsc::channel();
    // A thread of its own: a signal does not end a read, but it does end the wait for this channel.
    std::thread::spawn(move || {
        let mut lines = io::stdin().lock().lines();
        while lines.next().is_some_and(|line| line.is_ok()) && sender.send(()).is_ok() {}
    });
    receiver
}

impl<W: Write> Screen<W> {
    /// Lines without control sequences.
    pub fn plain(out: W) -> Self {
        Self {
            out,
            print: Print::Plain,
            keyboard: None,
            live: String::new(),
        }
    }

    /// Title of a part.
    pub fn heading(&mut self, text: &str) -> Result<()> {
        let text = self.emphasised(text);
        self.text(&format!("\n{text}\n"))
    }

    /// Text as it is; ends in one line end.
    pub fn text(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "{}", text.trim_end_matches('\n'))?;
        Ok(self.out.flush()?)
    }

    /// An empty line.
    pub fn gap(&mut self) -> Result<()> {
        self.text("")
    }

    /// A command that is about to be run.
    pub fn command(&mut self, line: &Line) -> Result<()> {
        let line = self.emphasised(&format!("$ {line}"));
        self.gap()?;
        self.text(&line)
    }

    /// Whether a claim holds.
    pub fn claim(&mut self, claim: &Claim) -> Result<()> {
        let Claim { text, holds } = claim;
        if *holds {
            return self.text(&format!("  ok: {text}"));
        }
        let line = self.emphasised(&format!("  DOES NOT HOLD: {text}"));
        self.text(&line)
    }

    /// Waits for Enter, if the reader wants that. The end of the input means: do not wait any more.
    ///
    /// # Errors
    /// `check` fails: the tour is to stop.
    pub fn pause(&mut self, check: &dyn Fn() -> Result<()>) -> Result<()> {
        if self.keyboard.is_none() {
            return Ok(());
        }
        self.text("\n-- Enter goes on --")?;
        while let Some(keyboard) = &self.keyboard {
            match keyboard.recv_timeout(Duration::from_millis(100)) {
                Ok(()) => break,
                Err(RecvTimeoutError::Timeout) => check()?,
                Err(RecvTimeoutError::Disconnected) => self.keyboard = None,
            }
        }
        Ok(())
    }

    /// Shows what is now, in a terminal: the next call replaces it.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn live(&mut self, text: &str) -> Result<()> {
        if self.print == Print::Plain || text == self.live {
            return Ok(());
        }
        // Lines are cut where the terminal ends: one that went on in a second row would spoil the count of rows.
        let show = format!("{}{UNWRAPPED}{text}{WRAPPED}", self.erasure());
        text.clone_into(&mut self.live);
        self.out.write_all(show.as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// Takes away what was shown by [`Screen::live`].
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn clear_live(&mut self) -> Result<()> {
        let erasure = self.erasure();
        self.live.clear();
        self.out.write_all(erasure.as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// Back to the first row of what is live, and all below it away.
    fn erasure(&self) -> String {
        match self.live.lines().count() {
            0 => String::new(),
            rows => format!("\x1b[{rows}A\x1b[J"),
        }
    }

    fn emphasised(&self, text: &str) -> String {
        match self.print {
            Print::Plain => text.to_owned(),
            Print::Terminal => format!("\x1b[1m{text}\x1b[0m"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(print: Print) -> String {
        let mut screen = Screen {
            out: Vec::new(),
            print,
            keyboard: None,
            live: String::new(),
        };
        screen.heading("Create").unwrap();
        screen.command(&Line::kubectl(["get", "pods"])).unwrap();
        screen
            .claim(&Claim {
                text: "they stay".into(),
                holds: true,
            })
            .unwrap();
        screen
            .claim(&Claim {
                text: "they go".into(),
                holds: false,
            })
            .unwrap();
        String::from_utf8(screen.out).unwrap()
    }

    #[test]
    fn a_file_gets_the_same_lines_without_control_characters() {
        let plain = printed(Print::Plain);
        assert_eq!(
            plain,
            "\nCreate\n\n$ kubectl get pods\n  ok: they stay\n  DOES NOT HOLD: they go\n"
        );
        assert_eq!(
            printed(Print::Terminal)
                .replace("\x1b[1m", "")
                .replace("\x1b[0m", ""),
            plain
        );
    }

    #[test]
    fn what_is_live_is_replaced_and_leaves_nothing() {
        let screen = |print| Screen {
            out: Vec::new(),
            print,
            keyboard: None,
            live: String::new(),
        };
        let mut terminal = screen(Print::Terminal);
        for text in ["one\ntwo\n", "one\ntwo\n", "three\n"] {
            terminal.live(text).unwrap();
        }
        terminal.clear_live().unwrap();
        terminal.clear_live().unwrap();
        let shown = String::from_utf8(terminal.out).unwrap();
        let shown = shown.replace(UNWRAPPED, "").replace(WRAPPED, "");
        assert_eq!(shown, "one\ntwo\n\x1b[2A\x1b[Jthree\n\x1b[1A\x1b[J");
        let mut file = screen(Print::Plain);
        file.live("one\n").unwrap();
        file.clear_live().unwrap();
        assert!(file.out.is_empty());
    }

    #[test]
    fn a_pause_takes_one_line_and_the_end_of_the_input_ends_all_pauses() {
        let (sender, receiver) = mpsc::channel();
        sender.send(()).unwrap();
        let mut screen = Screen {
            out: Vec::new(),
            print: Print::Plain,
            keyboard: Some(receiver),
            live: String::new(),
        };
        screen.pause(&|| Ok(())).unwrap();
        drop(sender);
        screen.pause(&|| Ok(())).unwrap();
        screen.pause(&|| Ok(())).unwrap();
        let text = String::from_utf8(screen.out).unwrap();
        assert_eq!(text.matches("Enter").count(), 2, "{text}");
    }
}
