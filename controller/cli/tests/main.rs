//! What `anneal` sends and prints, against a small server and the real API.

mod common;
#[path = "common/controller.rs"]
mod controller;
#[path = "../../api/tests/common/drivers.rs"]
#[allow(dead_code, missing_docs, reason = "each test program uses a part of it")]
mod drivers;
#[path = "../../../shared/certificate/tests/common/mod.rs"]
mod example;

mod bundles;
mod certificates;
mod collections;
mod command_line;
mod credentials;
mod docs;
mod endpoints;
mod getting_started;
mod many;
mod node_hardware;
mod nouns;
mod operator_token;
mod shell;
mod tls;
mod ui;
mod verbs;
mod why;
