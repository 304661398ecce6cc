//! Emulated bare metal for tests and for the demo.
//!
//! ```text
//!  network namespace (Netns)
//!  ┌──────────────────────────────────────────────────────────────────────┐
//!  │  controller under test ── br0 (Bridge) ── tap0 ── QEMU (Machine) ── disk images (disk, fill)
//!  │        └── Redfish over HTTP(S) ──► RedfishBmc ── power, boot order ──┘        │
//!  └─────────────────────────────────────────────────────────────────────┼────────┘
//!                                              read from outside: scan ◄──┘
//! ```
//!
//! The BMC here shares no code with `controller/bmc`: the two meet only in the Redfish specification. `recorded` plays BMCs that
//! others have recorded, without a machine.
//! Everything that is started belongs to a value whose drop stops it; processes also die with the thread
//! that started them (`setpriv --pdeathsig`), so that a killed test leaves nothing behind.
//!
//! Needs root (namespaces, taps) and the packages of `xtask/src/deps.rs`.

pub mod binaries;
pub mod bios;
pub mod controller;
pub mod disk;
pub mod dns;
pub mod efi_image;
pub mod fill;
pub mod images;
pub mod ipmi_sim;
pub mod key_lists;
pub mod linux_image;
pub mod loopback;
pub mod machine;
pub mod mirror;
pub mod net;
pub mod node;
pub mod packing;
pub mod process;
pub mod proxy;
pub mod qmp;
pub mod recorded;
pub mod redfish;
pub mod scan;
pub mod signatures;
pub mod site;
pub mod software_tpm;
pub mod time_server;
pub mod timeline;
pub mod tls;
pub mod trunk;
pub mod uefi_variables;
pub mod wait;
