//! The tests of the conductor. The conductor is optimized for the simulation, and in its crate its tests would be optimized with it, which
//! takes a minute longer to compile (docs/decisions/0071).
//!
//! `world` is a machine room in one process: a node, its agent and its BMC in virtual time, for whole runs.
//! `situation` is one node in one situation, for single decisions.

#![cfg(test)]

mod several;
mod situation;
mod world;

mod agent_plan;
mod at_rest;
mod basis;
mod checkpoints;
mod cleaning;
mod clock_jumps;
mod connections;
mod deleted;
mod deployed_disk;
mod deployment;
mod deployment_images;
mod events;
mod evidence;
mod fails_closed;
mod fast_track;
mod foreign_agent;
mod hello;
mod inspected_ports;
mod known_disks;
mod leases;
mod lifecycle;
mod logs;
mod panics;
mod passes;
mod power_loss;
mod power_off;
mod raid;
mod ramdisk_interface;
mod recovers;
mod rules;
mod steps;
mod virtual_media;
