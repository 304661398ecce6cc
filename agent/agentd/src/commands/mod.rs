//! The commands a controller can give, one file a group.
//!
//! A command blocks on a thread of its own; the [`executor`](crate::executor) runs one at a time and catches panics.

mod anneal;
mod command;
mod flow;
mod image;
mod log;
mod poll;
mod rescue;
mod standby;
mod step;
mod system;
mod table;

pub use command::{Call, Command, IpaCompatibility, Mode, UnknownCommand, type_error};
pub use log::system_logs;
pub use table::{all, find, split};
