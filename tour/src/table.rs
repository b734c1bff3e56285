//! A table for a terminal or a file: columns aligned with spaces, numbers to the right, no control characters.

use std::fmt;

/// Rows under a heading.
#[derive(Clone, Debug)]
pub struct Table {
    heading: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(heading: Vec<&'static str>) -> Self {
        Self {
            heading,
            rows: Vec::new(),
        }
    }

    /// Adds a row: a cell for each heading.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Width and alignment of each column: as wide as its widest cell, to the right if all its cells are numbers.
    fn columns(&self) -> Vec<(usize, Align)> {
        let column = |(index, heading): (usize, &&str)| {
            let cells = || self.rows.iter().filter_map(move |row| row.get(index));
            let width = cells().map(|cell| cell.chars().count()).max().unwrap_or_default();
            let align = if !self.rows.is_empty() && cells().all(|cell| cell.parse::<f64>().is_ok()) {
                Align::Right
            } else {
                Align::Left
            };
            (width.max(heading.chars().count()), align)
        };
        self.heading.iter().enumerate().map(column).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells = cells.zip(&columns).map(|(cell, (width, align))| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("   ").trim_end().to_owned()
        };
        writeln!(f, "{}", line(&mut self.heading.iter().copied()))?;
        self.rows
            .iter()
            .try_for_each(|row| writeln!(f, "{}", line(&mut row.iter().map(String::as_str))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_numbers_stand_to_the_right() {
        let mut table = Table::new(vec!["NAME", "RESTARTS", "READY"]);
        table.push(vec!["web-1".into(), "7".into(), "yes".into()]);
        table.push(vec!["w".into(), "12".into(), String::new()]);
        assert_eq!(
            table.to_string(),
            "NAME    RESTARTS   READY\n\
             web-1          7   yes\n\
             w             12\n"
        );
    }

    #[test]
    fn a_table_without_rows_is_its_heading() {
        assert_eq!(Table::new(vec!["A", "LONG"]).to_string(), "A   LONG\n");
    }
}
