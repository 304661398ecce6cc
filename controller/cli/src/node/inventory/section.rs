//! A table of the inventory.

/// A table; one without rows is not shown.
pub struct Section {
    pub headings: &'static [&'static str],
    pub rows: Vec<Vec<String>>,
}

impl Section {
    pub fn new(headings: &'static [&'static str], rows: Vec<Vec<String>>) -> Self {
        Self { headings, rows }
    }
}
