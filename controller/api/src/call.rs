//! One request as the handlers see it.

use crate::App;
use crate::args::Args;
use crate::auth::{Identity, Owners, guard, policy, seen};
use crate::body;
use crate::error::ApiError;
use crate::front::Suffixed;
use crate::links::Links;
use crate::microversion::Version;
use crate::request_id::RequestId;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Query, Request};
use axum::http::{Extensions, Response, StatusCode, header};
use axum::response::IntoResponse;
use model::{Event, Node, Timestamp};
use serde_json::{Map, Value};
use std::sync::Arc;
use store::Store;
use uuid::Uuid;

/// A request, read whole.
pub struct Call {
    /// The house, with what the caller sees of the store.
    pub app: Arc<App>,
    /// The house with all of it: for what must be unique among all.
    pub house: Arc<App>,
    /// Who asks.
    pub identity: Identity,
    /// Its id.
    pub request_id: String,
    /// Microversion.
    pub version: Version,
    /// Query.
    pub args: Args,
    /// Maker of links.
    pub links: Links,
    body: Bytes,
    naming: Naming,
}

impl FromRequest<Arc<App>> for Call {
    type Rejection = Response<Body>;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Self::Rejection> {
        let naming = Naming::of(request.extensions());
        let version = naming.version;
        let identity = request.extensions().get::<Identity>().cloned().unwrap_or(Identity::NOBODY);
        let request_id = request.extensions().get::<RequestId>().map(|id| id.as_str().to_owned());
        let unfound = request.extensions().get::<guard::Unfound>().is_some();
        let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri())
            .map_err(|error| ApiError::plain(400, error.body_text()).into_response())?;
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let links = Links::new(&app.settings.public_endpoint, host);
        let body = Bytes::from_request(request, app).await.map_err(IntoResponse::into_response)?;
        let house = app.clone();
        let app = match identity.project() {
            Some(_) if unfound => Arc::new(App { store: seen::nothing(&app.store), ..App::clone(app) }),
            Some(project) => Arc::new(App { store: seen::by(&app.store, project), ..App::clone(app) }),
            None => house.clone(),
        };
        let request_id = request_id.unwrap_or_default();
        Ok(Self { app, house, identity, request_id, version, args: Args::new(query.0), links, body, naming })
    }
}

impl Call {
    /// Now.
    pub fn now(&self) -> Timestamp {
        self.app.clock.now()
    }

    /// The events with the id of this request, which caused them.
    pub fn caused(&self, mut events: Vec<Event>) -> Vec<Event> {
        events.iter_mut().for_each(|event| event.request_id = Some(self.request_id.clone()));
        events
    }

    /// Whether the caller may do to this node what `policy` guards.
    pub fn may(&self, policy: &str, node: &Node) -> bool {
        policy::may(policy, &self.identity, Some(&Owners::of(node)))
    }

    /// 403 if he may not: for what the body asks for, which the guard of the row does not read.
    pub fn permit(&self, policy: &str, node: &Node) -> Result<(), ApiError> {
        if self.may(policy, node) { Ok(()) } else { Err(guard::forbidden(policy)) }
    }

    /// The body as JSON; an empty one is an empty object, as in Ironic.
    pub fn json(&self) -> Result<Value, ApiError> {
        if self.body.is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| ApiError::invalid(format!("The body of the request is not valid JSON: {error}")))
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
        self.naming.node(&*self.app.store, ident).await
    }
}

/// How the path of a request names nodes. The one place in which a name becomes a node: whoever asks whether a caller
/// may must find the node that the handler will find.
#[derive(Clone)]
pub struct Naming {
    version: Version,
    /// The last part of the path, when `.json` was taken from it.
    suffixed: Option<String>,
}

impl Naming {
    /// As the front of the API has read it.
    pub fn of(extensions: &Extensions) -> Self {
        Self {
            version: extensions.get::<Version>().copied().unwrap_or(Version(crate::microversion::MIN)),
            suffixed: extensions.get::<Suffixed>().map(|suffixed| suffixed.0.clone()),
        }
    }

    /// The node with this UUID or name in `store`. A name that came with `.json` may end in that itself.
    ///
    /// # Errors
    /// 404: there is none. 400: this can be no name.
    pub async fn node(&self, store: &dyn Store, ident: &str) -> Result<Node, ApiError> {
        match self.named(store, ident).await {
            Err(error) if error.status == 404 && self.suffixed.as_deref() == Some(ident) => {
                self.named(store, &format!("{ident}.json")).await
            }
            found => found,
        }
    }

    async fn named(&self, store: &dyn Store, ident: &str) -> Result<Node, ApiError> {
        if let Ok(uuid) = Uuid::parse_str(ident) {
            return store.node(uuid).await.map_err(|error| match error {
                store::StoreError::NotFound { .. } => ApiError::no_node(ident),
                other => other.into(),
            });
        }
        if !crate::args::is_logical_name(ident) {
            return Err(ApiError::invalid(format!("Expected UUID or name for node_ident: {ident}")));
        }
        if !self.version.has(5) {
            return Err(ApiError::no_node(ident));
        }
        Ok(store.node_by_ident(ident).await?)
    }
}

/// An answer with a JSON body.
pub fn json(status: u16, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// An answer without a body, with a `Location` when there is one to tell.
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
