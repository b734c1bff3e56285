//! Command lines as Go programs with `pflag` read them, driven by a table of [`Flag`]s.
//!
//! `--name=value`, `--name value`, bare booleans (`--name`, never `--name value`), shorthands `-v=4`, `-v 4`, `-v4`.
//! `--` ends the flags. Words that are not flags are kept as arguments, at any position. A later value replaces
//! an earlier one.

mod klog;
mod usage;

use std::collections::BTreeMap;

use jiff::SignedDuration;

use crate::duration;

pub use klog::LOGGING;

/// What a flag holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`, also as Go's `1`, `t`, `T`, `TRUE` …; without a value, true.
    Bool,
    /// A Go duration.
    Duration,
    /// A floating-point number.
    Float,
    /// A 64-bit integer.
    Int,
    /// Any text.
    String,
}

/// One flag.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Name after the two dashes.
    pub name: &'static str,
    /// One-letter form after a single dash.
    pub short: Option<char>,
    /// Value if not given, as one would type it.
    pub default: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// One line of help.
    pub help: &'static str,
}

/// The flags of one command.
#[derive(Clone, Copy, Debug)]
pub struct FlagSet {
    flags: &'static [Flag],
}

/// A command line that cannot be read. Print it with the usage text and exit with code 2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FlagError {
    /// What is wrong, in the words of `pflag`.
    pub message: String,
    /// `--help` was given: not a mistake, the caller prints the usage.
    pub help: bool,
    /// All flags, as [`FlagSet::usage`].
    pub usage: String,
}

/// The flags' values.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    texts: BTreeMap<&'static str, (Kind, String)>,
    set: Vec<&'static str>,
    arguments: Vec<String>,
}

impl FlagSet {
    /// A command with these flags.
    pub const fn new(flags: &'static [Flag]) -> Self {
        Self { flags }
    }

    /// Reads a command line, without the program's name.
    ///
    /// # Errors
    /// The first word that is not understood, or a request for help.
    pub fn parse<I: IntoIterator<Item = S>, S: Into<String>>(&self, line: I) -> Result<Values, FlagError> {
        let defaults = self
            .flags
            .iter()
            .map(|flag| (flag.name, (flag.kind, flag.default.to_owned())));
        let mut values = Values {
            texts: defaults.collect(),
            set: Vec::new(),
            arguments: Vec::new(),
        };
        let mut words = line.into_iter().map(Into::into);
        while let Some(word) = words.next() {
            if word == "--" {
                values.arguments.extend(words);
                break;
            }
            if let Some(long) = word.strip_prefix("--") {
                self.long(long, &word, &mut words, &mut values)?;
            } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
                self.shorthands(short, &mut words, &mut values)?;
            } else {
                values.arguments.push(word);
            }
        }
        Ok(values)
    }

    fn long(
        &self,
        text: &str,
        word: &str,
        rest: &mut impl Iterator<Item = String>,
        values: &mut Values,
    ) -> Result<(), FlagError> {
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(name, value)| (name, Some(value.to_owned())));
        if name.is_empty() || name.starts_with('-') {
            return Err(self.error(format!("bad flag syntax: {word}")));
        }
        let Some(flag) = self.flags.iter().find(|flag| flag.name == name) else {
            return Err(if name == "help" {
                self.help()
            } else {
                self.error(format!("unknown flag: --{name}"))
            });
        };
        let value = match (value, flag.kind) {
            (Some(value), _) => value,
            (None, Kind::Bool) => "true".to_owned(),
            (None, _) => rest
                .next()
                .ok_or_else(|| self.error(format!("flag needs an argument: --{name}")))?,
        };
        self.set(flag, value, values)
    }

    /// A word of one-letter flags: booleans may be joined, and the rest of the word is the value of any other.
    fn shorthands(
        &self,
        text: &str,
        rest: &mut impl Iterator<Item = String>,
        values: &mut Values,
    ) -> Result<(), FlagError> {
        let mut tail = text;
        while let Some(letter) = tail.chars().next() {
            let here = tail;
            tail = tail.get(letter.len_utf8()..).unwrap_or_default();
            let Some(flag) = self.flags.iter().find(|flag| flag.short == Some(letter)) else {
                let unknown = format!("unknown shorthand flag: '{letter}' in -{here}");
                return Err(if letter == 'h' {
                    self.help()
                } else {
                    self.error(unknown)
                });
            };
            let value = if let Some(value) = tail.strip_prefix('=').filter(|value| !value.is_empty()) {
                tail = "";
                value.to_owned()
            } else if flag.kind == Kind::Bool {
                "true".to_owned()
            } else if tail.is_empty() {
                let missing = || self.error(format!("flag needs an argument: '{letter}' in -{here}"));
                rest.next().ok_or_else(missing)?
            } else {
                std::mem::take(&mut tail).to_owned()
            };
            self.set(flag, value, values)?;
        }
        Ok(())
    }

    fn set(&self, flag: &Flag, value: String, values: &mut Values) -> Result<(), FlagError> {
        let reason = match flag.kind {
            Kind::Bool if read_bool(&value).is_none() => "not a boolean",
            Kind::Duration if duration::parse(&value).is_err() => "not a duration",
            Kind::Float if value.parse::<f64>().is_err() => "not a number",
            Kind::Int if value.parse::<i64>().is_err() => "not an integer",
            _ => {
                values.texts.insert(flag.name, (flag.kind, value));
                values.set.push(flag.name);
                return Ok(());
            }
        };
        let short = flag.short.map(|short| format!("-{short}, ")).unwrap_or_default();
        Err(self.error(format!(
            "invalid argument {value:?} for \"{short}--{}\" flag: {reason}",
            flag.name
        )))
    }

    fn help(&self) -> FlagError {
        FlagError {
            message: "help requested".to_owned(),
            help: true,
            usage: self.usage(),
        }
    }

    fn error(&self, message: String) -> FlagError {
        FlagError {
            message,
            help: false,
            usage: self.usage(),
        }
    }

    /// All flags with defaults and help, one or more lines each, sorted by name.
    pub fn usage(&self) -> String {
        usage::text(self.flags)
    }
}

fn read_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Reading a flag that is not in the table, or as another kind than in the table, gives the kind's zero value.
impl Values {
    /// A boolean.
    pub fn get_bool(&self, name: &str) -> bool {
        self.typed(name, Kind::Bool)
            .and_then(read_bool)
            .unwrap_or_default()
    }

    /// An integer.
    pub fn get_int(&self, name: &str) -> i64 {
        self.typed(name, Kind::Int)
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    }

    /// A floating-point number.
    pub fn get_float(&self, name: &str) -> f64 {
        self.typed(name, Kind::Float)
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    }

    /// A duration.
    pub fn get_duration(&self, name: &str) -> SignedDuration {
        self.typed(name, Kind::Duration)
            .and_then(|text| duration::parse(text).ok())
            .unwrap_or_default()
    }

    /// A text.
    pub fn get_string(&self, name: &str) -> &str {
        self.typed(name, Kind::String).unwrap_or_default()
    }

    /// Was it on the command line?
    pub fn is_set(&self, name: &str) -> bool {
        self.set.contains(&name)
    }

    /// The words that are not flags.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    fn typed(&self, name: &str, kind: Kind) -> Option<&str> {
        self.texts
            .get(name)
            .filter(|(found, _)| *found == kind)
            .map(|(_, text)| text.as_str())
    }
}

#[cfg(test)]
mod tests;
