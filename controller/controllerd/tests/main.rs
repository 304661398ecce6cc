//! The real `anneal-controller`, in short tests.

mod cluster;

mod allocator;
mod certificate;
mod docs;
mod full_log;
mod json_log;
mod loopback;
mod operators;
mod restored;
mod unit;
mod web_page;
