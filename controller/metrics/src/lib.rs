//! Counts what a controller does, and writes it in Prometheus' text format, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! ```text
//!   Store ─────────▶ metered_store      ┐
//!   Executor ──────▶ metered_executor   │
//!   conductor ─────▶ metered_passes     ├──▶ family: counters, histograms ──┐
//!   BootDirectory ─▶ metered_directory  │                                   ├──▶ text ──▶ GET /metrics
//!   API's router ──▶ requests           ┘                                   │
//!   the store's bell ──▶ census: one small entry a node ────────────────────┘
//! ```
//!
//! What is measured does not know that it is: each wrapper implements the trait that it wraps, and passes every call on.
//!
//! Invariants:
//! - A value of a label is `&'static str`: a word of this program, never one of a request, of a machine or of an agent. So
//!   no name of a node is in a label, and the number of series has a bound that no client can raise.
//! - To answer a scrape the store is asked nothing.

mod census;
mod counts;
mod erase;
mod family;
mod labels;
mod metered_directory;
mod metered_executor;
mod metered_passes;
mod metered_store;
mod metrics;
mod process;
mod requests;
mod text;

pub use metrics::{CONTENT_TYPE, Metrics};
