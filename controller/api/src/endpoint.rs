//! What is served: one row for each method of each path. The router, the table of `docs/compatibility.md`, the
//! OpenAPI document and the tests of who may do what are all made from these rows, so none of them can forget one.

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
    /// Name of Ironic's policy that says who may: `baremetal:node:get`; [`OPEN`]: anybody.
    pub policy: &'static str,
    /// Whether agents may as well, that prove it to the handler with their token.
    pub agents: bool,
    /// How much of it there is.
    pub serves: Serves,
    /// What it does, in a few words.
    pub about: &'static str,
    handler: MethodRouter<Arc<App>>,
}

/// How much of an endpoint there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// It does what Ironic's does.
    Fully,
    /// It answers as Ironic does when the interface behind it is a `noop`, for this reason.
    Noop(&'static str),
    /// Ironic has no such thing.
    Own,
}

/// Policy of what must be answered before anybody can have proved who he is: version documents, and what agents
/// prove with their token.
pub const OPEN: &str = "open";

/// What Ironic serves and this API does not: method, path, why.
pub const UNSERVED: &[(&str, &str, &str)] = &[];

impl Endpoint {
    /// The endpoint with what is behind it.
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
        Self { method, path, since, policy, agents: false, serves: Serves::Fully, about, handler }
    }

    /// It answers like a `noop`, because.
    pub fn noop(self, why: &'static str) -> Self {
        Self { serves: Serves::Noop(why), ..self }
    }

    /// An agent may as well that names its node and its token in headers; the handler checks them.
    pub fn or_agents(self) -> Self {
        Self { agents: true, ..self }
    }

    /// Ironic has no such thing.
    pub fn own(self) -> Self {
        Self { serves: Serves::Own, ..self }
    }

    /// Let `change` wrap what is behind it.
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
