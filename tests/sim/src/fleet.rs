//! Two hundred nodes at once.
