//! The usage text, in `pflag`'s layout.

use super::{Flag, Kind};

/// One line per flag, help texts in one column; further lines of a help text are indented to it.
pub(super) fn text(flags: &[Flag]) -> String {
    let mut sorted: Vec<&Flag> = flags.iter().collect();
    sorted.sort_by_key(|flag| flag.name);
    let lines: Vec<(String, &Flag)> = sorted.into_iter().map(|flag| (head(flag), flag)).collect();
    let column = lines
        .iter()
        .map(|(head, _)| head.chars().count())
        .max()
        .unwrap_or_default()
        + 3;
    let indent = format!("\n{}", " ".repeat(column));
    let mut out = String::new();
    for (head, flag) in lines {
        let gap = " ".repeat(column - head.chars().count());
        let help = flag.help.replace('\n', &indent);
        out.extend([head, gap, help, default(flag), "\n".to_owned()]);
    }
    out
}

fn head(flag: &Flag) -> String {
    let short = flag
        .short
        .map_or_else(|| "      ".to_owned(), |short| format!("  -{short}, "));
    let value = match flag.kind {
        Kind::Bool => "",
        Kind::Duration => " duration",
        Kind::Float => " float",
        Kind::Int => " int",
        Kind::String => " string",
    };
    format!("{short}--{}{value}", flag.name)
}

/// The default, unless it is the kind's zero value.
fn default(flag: &Flag) -> String {
    match (flag.kind, flag.default) {
        (_, "") | (Kind::Bool, "false") | (Kind::Int | Kind::Float, "0") | (Kind::Duration, "0" | "0s") => {
            String::new()
        }
        (Kind::String, text) => format!(" (default {text:?})"),
        (_, text) => format!(" (default {text})"),
    }
}
