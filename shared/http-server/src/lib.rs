//! The HTTP/1 server of the controller and of the agent: it serves an [`axum::Router`], with or without TLS, to clients
//! that may be hostile.
//!
//! ```text
//! accept ─▶ Places (in all, per address) ─▶ TLS handshake ─▶ TimedIo ─▶ hyper ─▶ router
//!              │ full: the connection that has waited longest for its client is closed
//! ```
//!
//! A client has a limited time for its handshake, for the head of a request, for its body and between two requests
//! ([`Timeouts`]). A new connection always gets a place while any other connection waits for its client: half requests
//! and idle connections therefore never keep out a client that sends a whole request at once.

mod activity;
pub mod file;
mod file_body;
mod listener;
mod places;
mod range;
mod server;
mod timed_io;
mod timeouts;
mod tracked_body;

pub use listener::{Listener, LocalUser};
pub use places::{Limits, Places, address_key};
pub use server::{ClientAddress, Clients, Peer, Server};
pub use timeouts::Timeouts;
