//! Hardware managers that are programs of their own (hardware-managers/hwm-sdk/PROTOCOL.md): each in a sandbox, each
//! behind the trait of those in the tree.
//!
//! ```text
//!   bundles    fetched files, verified and mounted as directories
//!   source     where they are; manifest and digest
//!   externals  all of them
//!   manager    External: the trait, its lives, its restarts, what is kept of it
//!   accept     what of its answers is taken (pure)
//!   shared     what link and reader share
//!   link       one life of its process: calls and deadlines
//!   reader     the thread that reads and kills it
//!   services   what it may ask: read_device, fetch
//!   grants     what its manifest grants, as devices of this machine
//! ```
//!
//! Invariants: nothing a manager does ends or blocks the agent for longer than its deadlines; what it breaks is its
//! own step; no reserved name, no step of the agent's own is its; two of one name: the second is refused.

mod accept;
pub mod bundles;
mod externals;
mod grants;
mod limits;
mod link;
mod manager;
mod reader;
mod records;
mod services;
mod shared;
mod source;

pub use externals::{Externals, step_names};
pub use limits::Limits;
pub use manager::External;
pub use source::{ARTIFACTS, Source, one, read};
