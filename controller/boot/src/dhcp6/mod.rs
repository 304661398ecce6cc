//! DHCPv6 for booting (RFC 8415, RFC 5970): one network, whose prefix has 64 bits, and no table of leases.
//!
//! ```text
//!  firmware, iPXE ── SOLICIT ──────────────────▶ ADVERTISE   address, URL of the loader or of the boot script
//!                 ── REQUEST, RENEW, REBIND ───▶ REPLY       the same
//!                 ── INFORMATION-REQUEST ──────▶ REPLY       the URL alone
//! ```
//!
//! The address of a client is computed from the names that it gives itself and its association: it is the same after a restart and from
//! every controller. OVMF gives itself other names at each boot. Relays are not answered.

mod answer;
mod config;
mod message;
mod service;

pub use answer::{Answer, answer};
pub use config::Dhcp6Config;
pub use service::Dhcp6;
