//! Enums whose values are the rows of a table, in the order of the enum.

/// The values of a table.
pub(crate) const fn keys<T: Copy, Facts: Copy, const N: usize>(table: [(T, Facts); N]) -> [T; N] {
    let mut keys = [table[0].0; N];
    let mut row = 0;
    while row < N {
        keys[row] = table[row].0;
        row += 1;
    }
    keys
}
