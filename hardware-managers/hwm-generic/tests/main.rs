//! The tests of the manager, one module a subject: one binary, so that they are linked once.

#[path = "../../../shared/image-source/tests/main/authority.rs"]
#[expect(dead_code, reason = "the tests of image-source use all of it")]
mod authority;
mod bad_images;
mod bios;
mod clear_tpm;
#[path = "../../../agent/block/tests/common/mod.rs"]
mod common;
mod conformance;
mod controllers;
mod erase_pstore;
mod hardware;
mod holders;
mod interrupted;
mod loop_devices;
mod step;
#[path = "../../../shared/image-source/tests/main/mirror.rs"]
#[expect(dead_code, reason = "the tests of image-source use all of it")]
mod tls_mirror;
mod tree;
mod verify;
mod write_image;
mod write_image_tls;
