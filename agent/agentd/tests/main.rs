//! The agent as its controllers see it.

mod api;
mod common;
mod controller;
#[path = "../../../shared/certificate/tests/common/mod.rs"]
mod example;
mod life;
#[path = "../../block/tests/common/mod.rs"]
mod loops;
mod remote;
mod vendor;

mod boot_proof;
mod bundles;
mod compatibility;
mod discovery;
mod evidence;
mod external;
mod external_agent;
mod inspection;
mod ipa_replay;
mod ironic_deploys;
mod kinds;
mod lldp;
mod loopback;
mod rescue;
mod uefi;
