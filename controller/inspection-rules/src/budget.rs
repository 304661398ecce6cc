//! Bounds the work of the rules of one inspection, so that the author of a rule cannot hold up the controller.

use crate::signature::OperationError;
use std::cell::Cell;

/// Most operations, each turn of a loop counted.
const OPERATIONS: usize = 10_000;

/// Most bytes of text that are made of templates or searched by regular expressions, and values that are copied.
const WORK: usize = 16 << 20;

/// Deepest value that a rule may make, counted from the attribute that it is in. What is read back from the store must
/// not be deeper than 128.
pub const DEPTH: usize = 48;

/// The work that is left.
pub struct Budget {
    operations: Cell<usize>,
    work: Cell<usize>,
}

impl Budget {
    /// The full budget.
    pub fn new() -> Self {
        Self { operations: Cell::new(OPERATIONS), work: Cell::new(WORK) }
    }

    /// Take one operation from the budget.
    pub fn operation(&self) -> Result<(), OperationError> {
        take(&self.operations, 1, || {
            format!(
                "the rules of one inspection may make at most {OPERATIONS} operations, turns of loops counted"
            )
        })
    }

    /// Take so many bytes or values from it.
    pub fn work(&self, amount: usize) -> Result<(), OperationError> {
        take(&self.work, amount, || {
            format!("the rules of one inspection may make and search at most {WORK} bytes")
        })
    }
}

fn take(left: &Cell<usize>, amount: usize, why: impl FnOnce() -> String) -> Result<(), OperationError> {
    match left.get().checked_sub(amount) {
        Some(rest) => {
            left.set(rest);
            Ok(())
        }
        None => Err(OperationError(why())),
    }
}
