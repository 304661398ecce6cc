//! The controller's page, used as people use it: Debian's Chromium, a real `anneal-controller`, and nodes at work.
//!
//! ```text
//!   test ─▶ Page ─▶ Browser ─▶ Pipe ═══ DevTools protocol ═══▶ chromium ─▶ HTTP ─┐
//!     │                                                                          ▼
//!     └───▶ Controller ─▶ anneal-controller ◀── lookups, heartbeats ── Machine (room::Agent), RealAgent (anneal-agent)
//! ```
//!
//! A click is a click of the mouse at the place where the thing is drawn, and a key is a key. What a test waits for, it asks for
//! until it is there.
//!
//! Chromium is driven by its own protocol over a pair of pipes (`--remote-debugging-pipe`): messages are JSON that ends with a zero
//! byte. This needs no port, no web socket and no second program, and it can do what WebDriver cannot: dark colours, a lost
//! network, a script before the first of the page. The crates that wrap this protocol are made from its whole definition, and take
//! longer to compile than the rest of the tests.

pub mod axe;
pub mod browser;
pub mod controller;
pub mod machine;
pub mod open_pages;
pub mod page;
mod pipe;
pub mod real_agent;
pub mod tour;
mod upload;

pub use browser::Browser;
pub use controller::{Controller, Login};
pub use machine::Machine;
pub use page::Page;
pub use real_agent::RealAgent;
