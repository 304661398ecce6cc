//! A SATA or SAS drive in user space, written from the standards and not from the code under test.
//!
//! ```text
//!  kernel: sd ── tcm_loop ── target_core_user ──ring──▶ tcmu.rs ──▶ Drive::execute ──▶ scsi/ ──▶ ata/ (SAT)
//!                                                                        │
//!                                             medium, non-volatile memory (medium.rs, memory.rs)
//! ```
//!
//! [`Drive`] is a pure state machine over a medium, a page of memory that outlives the power, and a clock: bytes of a
//! command in, bytes of an answer out. [`tcmu`] makes a real `/dev/sdX` of it in a kernel that has the modules; [`rig`]
//! does that before the agent begins, in a ramdisk.

pub mod ata;
pub mod clock;
pub mod drive;
pub mod medium;
pub mod memory;
pub mod rig;
pub mod scsi;
pub mod sense;
pub mod spec;
pub mod sys;
pub mod tcmu;
pub mod work;

pub use drive::{Answer, Drive};
pub use spec::Spec;
