//! What containers read of the labels and annotations of their pods: as they should, and as they do.

use go_compat::container::environment_hash;
use kruise_views::NodeContainerView;

/// The hash of what a container that starts now reads.
pub(super) fn expected(container: &NodeContainerView) -> u64 {
    let variables = container.environment.iter();
    environment_hash(variables.map(|(name, value)| (&**name, &**value)))
}

/// The hash of what a container reads, given what `env` printed in it.
pub(super) fn current(container: &NodeContainerView, printed: &str) -> u64 {
    let variables = container.environment.iter();
    let values = variables.map(|(name, expected)| (&**name, value(printed, name, expected)));
    let values: Vec<(&str, String)> = values.collect();
    environment_hash(values.iter().map(|(name, value)| (*name, value.as_str())))
}

/// The value of a variable; empty if it is not there. Values may have several lines, which may look like variables.
/// So the expected value is looked for first; what else there is ends where the next variable seems to begin.
fn value(printed: &str, name: &str, expected: &str) -> String {
    let mut starts = starts(printed);
    if starts.clone().any(|line| {
        let rest = line.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
        let rest = rest.and_then(|rest| rest.strip_prefix(expected));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'))
    }) {
        return expected.to_owned();
    }
    let found = starts.find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let mut lines = found.unwrap_or_default().split('\n');
    let mut value = lines.next().unwrap_or_default().to_owned();
    for line in lines.take_while(|line| !is_variable(line)) {
        value.push('\n');
        value.push_str(line);
    }
    // The last value of the output ends with the line.
    value.strip_suffix('\n').map_or(value.clone(), str::to_owned)
}

/// The text from the beginning of each line on.
fn starts(text: &str) -> impl Iterator<Item = &str> + Clone {
    let later = text.match_indices('\n').filter_map(|(at, _)| text.get(at + 1..));
    std::iter::once(text).chain(later)
}

fn is_variable(line: &str) -> bool {
    let name = line.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(environment: &[(&str, &str)]) -> NodeContainerView {
        NodeContainerView {
            name: "main".into(),
            environment: environment
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
        }
    }

    #[test]
    fn the_vectors_of_the_specification() {
        for (environment, hash) in [
            (&[("e2", "foo")][..], 2_053_173_458),
            (&[("e2", "")], 1_885_397_378),
            (&[], 86_995_377),
            (&[("a", "x<y&z>")], 90_320_360),
        ] {
            let container = container(environment);
            let lines = environment
                .iter()
                .map(|(name, value)| [name, "=", value, "\n"].concat());
            let printed: String = lines.collect();
            assert_eq!(expected(&container), hash, "{environment:?}");
            assert_eq!(
                current(&container, &format!("PATH=/bin\n{printed}HOME=/\n")),
                hash,
                "{environment:?}"
            );
        }
    }

    #[test]
    fn values_are_read_whole() {
        let printed = "A=1\nCFG=a=b\nc d\nHOME=/\nCFG2=x\nEMPTY=\nLAST=z\n";
        for (name, found) in [
            ("A", "1"),
            ("CFG", "a=b\nc d"),
            ("CFG2", "x"),
            ("EMPTY", ""),
            ("LAST", "z"),
            ("GONE", ""),
            ("FG", ""),
        ] {
            assert_eq!(value(printed, name, "else"), found, "{name}");
        }
    }

    #[test]
    fn an_expected_value_that_looks_like_variables_is_found() {
        let properties = "A=1\nB=2";
        assert_eq!(value("CFG=A=1\nB=2\nHOME=/\n", "CFG", properties), properties);
        assert_ne!(value("CFG=A=1\nB=3\nHOME=/\n", "CFG", properties), properties);
        assert_ne!(value("CFG=A=1\nB=22\nHOME=/\n", "CFG", properties), properties);
    }

    #[test]
    fn what_is_no_output_of_env_reads_as_empty() {
        for printed in ["", "\n\n", "=", "ä=1\nCF", "CFG"] {
            assert_eq!(value(printed, "CFG", "1"), "", "{printed:?}");
        }
    }
}
