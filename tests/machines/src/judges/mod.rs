//! BMCs that we did not write: OpenIPMI's ipmi_sim, and sushy-emulator over libvirt.

pub mod chassis;
pub mod ipmi_sim;
pub mod ironic;
pub mod libvirt;
pub mod sushy;
