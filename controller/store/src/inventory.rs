//! How large an inventory may be: pure, so that every store refuses the same.

use crate::error::{Result, StoreError};
use model::Inventory;
use std::io::Write;
use uuid::Uuid;

/// Largest inventory that is kept, in bytes of JSON: some fifty times that of a large server.
pub const MAX: usize = 2 << 20;

/// Refuses an inventory of `node` that is too large.
pub fn check(node: Uuid, inventory: &Inventory) -> Result<()> {
    struct Counting(usize);
    impl Write for Counting {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counting(0);
    serde_json::to_writer(&mut counted, inventory)
        .map_err(|error| StoreError::caused(format!("inventory of node {node}"), error))?;
    if counted.0 > MAX {
        return Err(StoreError::TooLarge { what: "The inventory", node, bytes: counted.0, most: MAX });
    }
    Ok(())
}
