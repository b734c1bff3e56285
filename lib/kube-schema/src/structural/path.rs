//! The path of a value in an object, as text only when an error needs it.

use std::fmt;

/// A place: the way down to it, from its end.
#[derive(Clone, Copy)]
pub(super) struct Path<'p> {
    above: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Member(&'p str),
    Item(usize),
}

impl<'p> Path<'p> {
    pub(super) const ROOT: Self = Self {
        above: None,
        step: Step::Root,
    };

    pub(super) fn member(&'p self, name: &'p str) -> Self {
        Self {
            above: Some(self),
            step: Step::Member(name),
        }
    }

    pub(super) fn item(&'p self, index: usize) -> Self {
        Self {
            above: Some(self),
            step: Step::Item(index),
        }
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Member(name) if self.above.is_some_and(Path::is_root) => f.write_str(name),
            Step::Member(name) => write!(f, ".{name}"),
            Step::Item(index) => write!(f, "[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn a_path_reads_as_errors_spell_it() {
        let spec = Path::ROOT.member("spec");
        let list = spec.member("list");
        let item = list.item(2);
        assert_eq!(Path::ROOT.to_string(), "");
        assert_eq!(spec.to_string(), "spec");
        assert_eq!(item.member("n").to_string(), "spec.list[2].n");
    }
}
