//! The endpoints: one row for each method of each path. The router, the table of `docs/compatibility.md`, the OpenAPI
//! document and the tests of access rights are all made from these rows, so none of them can miss one.

use crate::app::App;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use std::sync::Arc;

/// One method of one path.
#[derive(Clone)]
pub struct Endpoint {
    /// Its method.
    pub method: Method,
    /// Its path, with names in braces: `/v1/nodes/{ident}`.
    pub path: &'static str,
    /// The minor version since which Ironic has it.
    pub since: u16,
    /// Name of Ironic's policy that guards it: `baremetal:node:get`; [`OPEN`]: every caller is allowed.
    pub policy: &'static str,
    /// Whether agents are allowed, too; the handler checks their token.
    pub agents: bool,
    /// How completely it is served.
    pub serves: Serves,
    /// A short description.
    pub about: &'static str,
    /// The media type of its body, if it has one.
    pub takes: &'static str,
    handler: MethodRouter<Arc<App>>,
}

/// How completely an endpoint is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// It does what Ironic's does.
    Fully,
    /// It answers as Ironic does when the interface behind it is a `noop`, for this reason.
    Noop(&'static str),
    /// It answers and stores as Ironic does, and nothing that is done to a machine depends on what is stored, for this
    /// reason.
    Kept(&'static str),
    /// Ironic has no such thing.
    Own,
}

/// Media type of the bodies of most endpoints.
pub const JSON: &str = "application/json";

/// Policy of endpoints without authentication: version documents, and those where agents send their token.
pub const OPEN: &str = "open";

/// Endpoints of Ironic that this API does not serve: method, path, reason.
pub const UNSERVED: &[(&str, &str, &str)] = &[];

impl Endpoint {
    /// A row with its handler.
    pub fn new<H, T>(
        method: Method,
        path: &'static str,
        since: u16,
        policy: &'static str,
        about: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, Arc<App>>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).expect("a method that has a filter");
        let handler = on(filter, handler);
        Self {
            method,
            path,
            since,
            policy,
            agents: false,
            serves: Serves::Fully,
            about,
            takes: JSON,
            handler,
        }
    }

    /// Its body is of this media type.
    pub fn taking(self, media: &'static str) -> Self {
        Self { takes: media, ..self }
    }

    /// It answers as a `noop` interface does, for this reason.
    pub fn noop(self, why: &'static str) -> Self {
        Self { serves: Serves::Noop(why), ..self }
    }

    /// What it stores does nothing, for this reason.
    pub fn kept(self, why: &'static str) -> Self {
        Self { serves: Serves::Kept(why), ..self }
    }

    /// Agents that send their node and token in headers are allowed, too; the handler checks them.
    pub fn or_agents(self) -> Self {
        Self { agents: true, ..self }
    }

    /// Ironic has no such thing.
    pub fn own(self) -> Self {
        Self { serves: Serves::Own, ..self }
    }

    /// Wrap the handler.
    pub fn map(self, change: impl FnOnce(MethodRouter<Arc<App>>) -> MethodRouter<Arc<App>>) -> Self {
        Self { handler: change(self.handler), ..self }
    }

    /// What the router calls.
    pub(crate) fn into_handler(self) -> MethodRouter<Arc<App>> {
        self.handler
    }
}

/// Rows of a table: `rows![GET "/v1/nodes" 1 "baremetal:node:list_all" "nodes, a page of them" => list::list; …]`.
macro_rules! rows {
    ($($method:ident $path:literal $since:literal $policy:expr, $about:literal => $handler:expr;)*) => {
        vec![$($crate::endpoint::Endpoint::new(
            axum::http::Method::$method, $path, $since, $policy, $about, $handler,
        )),*]
    };
}
pub(crate) use rows;
