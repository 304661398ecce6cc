//! Our own terms, as the glossary lists them.

/// The heading of the section.
pub const HEADING: &str = "## Our own terms";

/// The first column of the section's table; none if there is no such section, or it has no table.
pub fn own_terms(page: &str) -> Option<Vec<String>> {
    let section = page.lines().skip_while(|line| line.trim_end() != HEADING).skip(1);
    let rows = section.take_while(|line| !line.starts_with("# ") && !line.starts_with("## "));
    let mut cells = rows.filter_map(|line| line.trim().strip_prefix('|')?.split('|').next());
    // The head, and the line below it.
    cells.next()?;
    cells.next().filter(|cell| cell.contains('-'))?;
    Some(cells.map(|cell| cell.trim().trim_matches(['*', '`', '_']).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_column_of_the_section_is_read() {
        let page = "# Words\n\n| word | is |\n|---|---|\n| node | x |\n\n## Our own terms\n\nText.\n\n| term | is |\n|---|---|\n\
                    | **bell** | wakes |\n| lease, epoch | x |\n\n## More\n\n| a | b |\n|---|---|\n| c | d |\n";
        assert_eq!(own_terms(page), Some(vec!["bell".to_owned(), "lease, epoch".to_owned()]));
    }

    #[test]
    fn a_page_without_the_section_or_its_table_has_none() {
        assert_eq!(own_terms("# Words\n| a | b |\n|---|---|\n| c | d |\n"), None);
        assert_eq!(own_terms("## Our own terms\n\nNone.\n"), None);
    }
}
