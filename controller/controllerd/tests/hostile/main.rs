//! The real `anneal-controller` under clients, disks and processes that do not do their part.

mod connections;
mod controller;
mod full_disk;
mod health;
mod memory;
mod rates;
