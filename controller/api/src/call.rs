//! One request as the handlers see it.

use crate::app::App;
use crate::args::Args;
use crate::auth::audit::RequestSummary;
use crate::auth::identity::TargetNotFound;
use crate::auth::{Identity, Owners, policy, scoped_store};
use crate::body;
use crate::boot_nonce;
use crate::bounded_json;
use crate::client_address;
use crate::error::ApiError;
use crate::links::Links;
use crate::lock_waits::LONGEST;
use crate::microversion::Version;
use crate::node_resolver::NodeResolver;
use crate::request_id::RequestId;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Query, Request};
use axum::http::{Response, StatusCode, header};
use axum::response::IntoResponse;
use model::boot::BootNonce;
use model::history::Severity;
use model::{Event, EventKind, Node, RequestSender, Resource, ResourceKind, Timestamp};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;
use uuid::Uuid;

/// A request, read whole.
pub struct Call {
    /// The app with the store as the caller may see it.
    pub app: Arc<App>,
    /// The app with the whole store, for checks of global uniqueness.
    pub unscoped_app: Arc<App>,
    /// The caller.
    pub identity: Identity,
    /// Its id.
    pub request_id: String,
    /// Microversion.
    pub version: Version,
    /// Query.
    pub args: Args,
    /// Builds links.
    pub links: Links,
    /// The nonce of a boot that the request shows.
    pub nonce: Option<BootNonce>,
    client: Option<IpAddr>,
    body: Bytes,
    resolver: NodeResolver,
    waits_until: OnceLock<Instant>,
}

impl FromRequest<Arc<App>> for Call {
    type Rejection = Response<Body>;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Self::Rejection> {
        let resolver = NodeResolver::of(request.extensions());
        let version = resolver.version;
        let identity = request.extensions().get::<Identity>().cloned().unwrap_or(Identity::ANONYMOUS);
        let not_found = request.extensions().get::<TargetNotFound>().is_some();
        let request_id = request.extensions().get::<RequestId>().map(|id| id.as_str().to_owned());
        let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri())
            .map_err(|error| ApiError::plain(400, error.body_text()).into_response())?;
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let links = Links::new(&app.settings.public_endpoint, host);
        let client = client_address::of(request.extensions());
        let nonce = boot_nonce::of(request.extensions());
        let audited = request.extensions().get::<RequestSummary>().cloned();
        let body = Bytes::from_request(request, app).await.map_err(IntoResponse::into_response)?;
        if let Some(asked) = audited {
            asked.note(&body);
        }
        let unscoped_app = app.clone();
        let scoped = |store| Arc::new(App { store, ..App::clone(app) });
        let app = match identity.project() {
            Some(_) if not_found => scoped(scoped_store::without_nodes(&app.store)),
            Some(project) => scoped(scoped_store::of_project(&app.store, project)),
            None => unscoped_app.clone(),
        };
        let request_id = request_id.unwrap_or_default();
        let args = Args::new(query.0);
        Ok(Self {
            app,
            unscoped_app,
            identity,
            request_id,
            version,
            args,
            links,
            nonce,
            client,
            body,
            resolver,
            waits_until: OnceLock::new(),
        })
    }
}

impl Call {
    /// Now.
    pub fn now(&self) -> Timestamp {
        self.app.clock.now()
    }

    /// Until when the request waits for locked nodes, however often it does: [`LONGEST`] after it began to.
    pub fn waits_until(&self) -> Instant {
        *self.waits_until.get_or_init(|| Instant::now() + LONGEST)
    }

    /// Where the request came from, if the server noted it.
    pub fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// The events with the id of this request, which caused them.
    pub fn caused(&self, mut events: Vec<Event>) -> Vec<Event> {
        for event in &mut events {
            event.request_id = Some(self.request_id.clone());
            event.sender = Some(self.sender());
        }
        events
    }

    /// The event of what this request did to a resource (`created`), for the log.
    pub fn did(&self, resource: &Resource, what: &str) -> Vec<Event> {
        vec![self.change(format!("{} {what} by a user", resource.kind.noun()))]
    }

    /// The event of a change that this request makes, for the log.
    pub fn change(&self, text: String) -> Event {
        let event = Event::new(EventKind::Change, Severity::Info, text, self.now());
        Event { request_id: Some(self.request_id.clone()), sender: Some(self.sender()), ..event }
    }

    /// The sender of the request.
    pub fn sender(&self) -> RequestSender {
        self.identity.sender(self.client)
    }

    /// Whether the caller may do to this node what `policy` guards.
    pub fn may(&self, policy: &str, node: &Node) -> bool {
        policy::may(policy, &self.identity, Some(&Owners::of(node)))
    }

    /// Whether a view of this node shows the caller what `policy` guards.
    pub fn may_see(&self, policy: &str, node: &Node) -> bool {
        self.may("baremetal:node:get:filter_threshold", node) || self.may(policy, node)
    }

    /// 403 unless [`Call::may`]: for what the body asks for, which the guard does not read.
    pub fn permit(&self, policy: &str, node: &Node) -> Result<(), ApiError> {
        if self.may(policy, node) { Ok(()) } else { Err(ApiError::forbidden(policy)) }
    }

    /// The body as JSON; an empty one is an empty object, as in Ironic.
    pub fn json(&self) -> Result<Value, ApiError> {
        if self.body.is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        bounded_json::parse(&self.body)
    }

    /// The body as named arguments, none of which is unknown.
    pub fn arguments(&self, known: &[&str]) -> Result<Map<String, Value>, ApiError> {
        let Value::Object(fields) = self.json()? else {
            return Err(ApiError::invalid("The body of the request must be a JSON object"));
        };
        body::only(&fields, known)?;
        Ok(fields)
    }

    /// The node with this UUID or name.
    pub async fn node(&self, ident: &str) -> Result<Node, ApiError> {
        self.resolver.node(&*self.app.store, ident).await
    }

    /// The same, not copied where the store has it in memory.
    pub async fn shared_node(&self, ident: &str) -> Result<Arc<Node>, ApiError> {
        self.resolver.shared_node(&*self.app.store, ident).await
    }

    /// Check that the chassis of a new or changed node exists.
    ///
    /// # Errors
    /// 400, also when it does not exist: the body names it, not the path.
    pub async fn check_chassis(&self, uuid: &str) -> Result<(), ApiError> {
        if Uuid::parse_str(uuid).is_err() {
            return Err(ApiError::invalid(format!("Expected UUID for chassis_uuid: {uuid}")));
        }
        let found = self.app.store.resource(ResourceKind::Chassis, uuid).await;
        found.map(drop).map_err(|error| ApiError::from(error).of_body())
    }
}

/// An answer with a JSON body.
pub fn json(status: u16, value: &Value) -> Response<Body> {
    json_text(status, value.to_string())
}

/// The same with the text of the body.
pub fn json_text(status: u16, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// An answer without a body, with a `Location` if there is one.
pub fn empty(status: u16, location: Option<&str>) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::NO_CONTENT);
    locate(&mut response, location);
    response
}

/// Set the `Location` of an answer.
pub fn locate(response: &mut Response<Body>, location: Option<&str>) {
    if let Some(value) = location.and_then(|location| header::HeaderValue::from_str(location).ok()) {
        response.headers_mut().insert(header::LOCATION, value);
    }
}
