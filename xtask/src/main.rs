//! entry
fn main() {}
