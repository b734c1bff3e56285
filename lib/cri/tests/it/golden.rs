//! Messages that protoc encoded; see gen/README.md.

/// The bytes of a message.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let mut lines = include_str!("golden.txt").lines();
    let digits = lines
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .unwrap_or_else(|| panic!("no {name}"));
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}
