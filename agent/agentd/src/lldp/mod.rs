//! Which switch ports the machine hangs on, by LLDP (IEEE 802.1AB): its neighbours announce themselves every 30 s.
//!
//! ```text
//!   frame   bytes of a frame → TLVs         (pure)
//!   listen  one socket, all interfaces, for a time
//! ```

mod frame;
mod listen;

pub use frame::{Tlv, tlvs};
pub use listen::{Listening, listen};
