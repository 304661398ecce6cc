//! The tests of the API, one module a resource or subject: one binary, so that they are linked once. The fuzzer is a
//! binary of its own.

mod audit;
mod bad_input;
mod bmc_login;
mod browsers;
mod bundles;
mod clients;
mod common;
mod compatibility;
mod configdrives;
mod disks;
mod docs;
mod erase_plan;
mod hellos;
mod history;
mod images;
mod inspection;
mod inspection_rules;
mod ironic_defects;
mod lifecycle;
mod lists;
mod locks;
mod microversions;
mod nodes;
mod openapi;
mod ports;
mod ramdisk;
mod recorded;
mod request_ids;
mod resources;
mod retirement;
mod rights;
mod sub_resources;
mod traits;
mod versions;
mod why;
