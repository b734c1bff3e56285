//! What the reader sees: plain lines, in order, the same in a terminal and in a file; only a terminal gets bold print.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::Result;

use super::line::Line;
use super::story::Claim;
use crate::interrupt;

/// May lines be emphasised?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Print {
    Plain,
    Bold,
}

/// Where the tour is told.
#[derive(Debug)]
pub(crate) struct Screen<W> {
    out: W,
    print: Print,
    /// Lines from the keyboard, if the reader is waited for.
    keyboard: Option<Receiver<()>>,
}

impl Screen<io::Stdout> {
    /// Standard output; bold in a terminal unless `NO_COLOR` is set.
    pub(crate) fn of_the_reader(keyboard: Option<Receiver<()>>) -> Self {
        let out = io::stdout();
        let bold = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let print = if bold { Print::Bold } else { Print::Plain };
        Self { out, print, keyboard }
    }
}

/// A message for each line of standard input; the channel closes with it.
pub(crate) fn keyboard() -> Receiver<()> {
    let (sender, receiver) = mpsc::channel();
    // A thread of its own: a signal does not end a read, but it does end the wait for this channel.
    std::thread::spawn(move || {
        let mut lines = io::stdin().lock().lines();
        while lines.next().is_some_and(|line| line.is_ok()) && sender.send(()).is_ok() {}
    });
    receiver
}

impl<W: Write> Screen<W> {
    #[cfg(test)]
    pub(crate) fn plain(out: W) -> Self {
        Self {
            out,
            print: Print::Plain,
            keyboard: None,
        }
    }

    /// Title of a part.
    pub(crate) fn heading(&mut self, text: &str) -> Result<()> {
        let text = self.emphasised(text);
        self.text(&format!("\n{text}\n"))
    }

    /// Text as it is; ends in one line end.
    pub(crate) fn text(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "{}", text.trim_end_matches('\n'))?;
        Ok(self.out.flush()?)
    }

    /// An empty line.
    pub(crate) fn gap(&mut self) -> Result<()> {
        self.text("")
    }

    /// A command that is about to be run.
    pub(crate) fn command(&mut self, line: &Line) -> Result<()> {
        let line = self.emphasised(&format!("$ {line}"));
        self.gap()?;
        self.text(&line)
    }

    /// Whether a claim holds.
    pub(crate) fn claim(&mut self, claim: &Claim) -> Result<()> {
        let Claim { text, holds } = claim;
        if *holds {
            return self.text(&format!("  ok: {text}"));
        }
        let line = self.emphasised(&format!("  DOES NOT HOLD: {text}"));
        self.text(&line)
    }

    /// Waits for Enter, if the reader asked for that. The end of the input means: go on to the end.
    pub(crate) fn pause(&mut self) -> Result<()> {
        if self.keyboard.is_none() {
            return Ok(());
        }
        self.text("\n-- Enter goes on --")?;
        while let Some(keyboard) = &self.keyboard {
            match keyboard.recv_timeout(Duration::from_millis(100)) {
                Ok(()) => break,
                Err(RecvTimeoutError::Timeout) => interrupt::check()?,
                Err(RecvTimeoutError::Disconnected) => self.keyboard = None,
            }
        }
        Ok(())
    }

    fn emphasised(&self, text: &str) -> String {
        match self.print {
            Print::Plain => text.to_owned(),
            Print::Bold => format!("\x1b[1m{text}\x1b[0m"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(print: Print) -> String {
        let mut screen = Screen {
            out: Vec::new(),
            print,
            keyboard: None,
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
        let plain = told(Print::Plain);
        assert_eq!(
            plain,
            "\nCreate\n\n$ kubectl get pods\n  ok: they stay\n  DOES NOT HOLD: they go\n"
        );
        assert_eq!(
            told(Print::Bold).replace("\x1b[1m", "").replace("\x1b[0m", ""),
            plain
        );
    }

    #[test]
    fn a_pause_takes_one_line_and_the_end_of_the_input_ends_all_pauses() {
        let (sender, receiver) = mpsc::channel();
        sender.send(()).unwrap();
        let mut screen = Screen {
            out: Vec::new(),
            print: Print::Plain,
            keyboard: Some(receiver),
        };
        screen.pause().unwrap();
        drop(sender);
        screen.pause().unwrap();
        screen.pause().unwrap();
        let text = String::from_utf8(screen.out).unwrap();
        assert_eq!(text.matches("Enter").count(), 2, "{text}");
    }
}
