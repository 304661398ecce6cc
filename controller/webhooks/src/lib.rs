//! Delivers events to webhooks.
//!
//! ```text
//!  take (one controller at a time) ─▶ a letter that is to be tried again ─▶ next events ─▶ sign, send ─▶ store how far
//!        ▲                                                                     │ fails: pause, at last a dead letter
//!        └─────────────── bell, or when a pause or the other's time is over ◀──┘
//! ```
//!
//! How far a webhook got the events is stored after each delivery, so it gets each event at least once, in the order of the log.
//! Secrets and URLs appear in no message.

mod dispatcher;
mod schedule;
mod sender;
mod settings;
mod signature;

pub use dispatcher::Dispatcher;
pub use schedule::Backoff;
pub use settings::Webhook;
pub use signature::HEADER;
