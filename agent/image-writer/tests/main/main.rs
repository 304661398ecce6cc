//! The engine against real servers, real tools' images, and disks that are loop devices or lie.

mod copies;
mod disks;
mod faults;
mod images;
mod mirror;
mod sessions;
mod tls;
