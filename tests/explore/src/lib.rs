//! Every order of faults there is, within bounds, tried on the decisions of the conductor.
//!
//! ```text
//!            ┌────────────────────────── World ──────────────────────────┐
//!            │ rows and time · where the conductor stands · machine and  │
//!            │ agent · network · what a witness remembers (Story)        │
//!            └──┬──────────────────────────────────────────────────────▲─┘
//!   moves::all  │  turn.rs    decide, apply_outcome: the real ones            │  every world that is new (canon.rs)
//!               ├▶ effects.rs what an action does, and its answers        │  is looked at in the same way
//!               └▶ nature.rs  agent, power, network, time, user ───────┘  (search.rs)
//! ```
//!
//! Real are `conductor::stages::{decide, apply_outcome}`, `model::request::apply_verb` and `store::contact::{grant, beat}`;
//! the rest is a model of its surroundings, with every fault that issue 4 names as one more thing that may happen.
//! Worlds are visited by the number of disturbances, so that the first violation of a property that is found has a
//! simple trace. After that, every world is asked where it ends when nothing more goes wrong: one that never comes to
//! rest is a livelock.
//!
//! Not a checker off the shelf: stateright's `eventually` is documented to work on acyclic paths only, and what is
//! asked here is about cycles; it knows no number of disturbances either, by which worlds are ordered here.

/// Faster than the allocator of the C library, with millions of worlds.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

mod basis;
mod canon;
mod effects;
mod evidence;
pub mod moves;
mod nature;
pub mod properties;
mod reasons;
pub mod scenario;
pub mod search;
mod trace;
pub mod transition;
mod turn;
pub mod world;
