//! The layer in front of every handler: it authenticates the caller and checks the policy of the row.
//!
//! For a caller of a project it looks up the projects of the object that the path names. An object that the caller may
//! not see is not rejected here: the handler runs with a store without it, so that the answer is the one for a missing
//! object.

use super::Auth;
use super::audit::{self, RequestSummary};
use super::basic;
use super::cookie::{self, RequestCookie};
use super::identity::{Identity, Owners, TargetNotFound};
use super::operator_token::TOKEN_FILE_HEADER;
use super::policy::{lesser, may, might};
use super::scoped_store;
use super::session::{Session, Sessions};
use crate::app::App;
use crate::args::Args;
use crate::client_address;
use crate::endpoint::{Endpoint, OPEN};
use crate::error::{ApiError, Shaped};
use crate::node_resolver::NodeResolver;
use crate::request_id::RequestId;
use agent_protocol::{NODE_HEADER, TOKEN_HEADER};
use axum::body::{Body, HttpBody};
use axum::extract::{FromRequestParts, Query, RawPathParams, Request};
use axum::http::{Extensions, HeaderMap, Method, Response, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use http_server::{LocalUser, Peer};
use model::{ResourceKind, Timestamp};
use std::net::IpAddr;
use std::sync::Arc;
use store::StoreError;

/// Paths that name a resource which a project may own.
const RESOURCES: [(&str, ResourceKind); 6] = [
    ("/v1/ports/{", ResourceKind::Port),
    ("/v1/portgroups/{", ResourceKind::Portgroup),
    ("/v1/volume/connectors/{", ResourceKind::VolumeConnector),
    ("/v1/volume/targets/{", ResourceKind::VolumeTarget),
    ("/v1/allocations/{", ResourceKind::Allocation),
    ("/v1/runbooks/{", ResourceKind::Runbook),
];
/// Paths of POST where the body names the node that the new object belongs to.
const IN_BODY: [&str; 4] = ["/v1/ports", "/v1/portgroups", "/v1/volume/connectors", "/v1/volume/targets"];

/// The check in front of one row.
#[derive(Clone)]
struct Guard {
    auth: Auth,
    sessions: Sessions,
    app: Arc<App>,
    method: Method,
    path: &'static str,
    policy: &'static str,
    agents: bool,
    takes: &'static str,
}

/// Put the check in front of the handler of `endpoint`.
pub fn guarded(endpoint: Endpoint, auth: &Auth, app: &Arc<App>) -> Endpoint {
    let guard = Guard {
        auth: auth.clone(),
        sessions: app.sessions.clone(),
        app: app.clone(),
        method: endpoint.method.clone(),
        path: endpoint.path,
        policy: endpoint.policy,
        agents: endpoint.agents,
        takes: endpoint.takes,
    };
    let layer = from_fn(move |request: Request, next: Next| {
        let guard = guard.clone();
        async move { guard.pass(request, next).await }
    });
    endpoint.map(|handler| handler.route_layer(layer))
}

/// Returns 401 instead of 404 and 405 to unauthenticated callers: Ironic authenticates before it reports that a path or
/// method does not exist.
pub async fn unrouted(
    auth: &Auth,
    headers: &HeaderMap,
    client: RequestOrigin,
    response: Response<Body>,
) -> Response<Body> {
    let routed =
        !matches!(response.status().as_u16(), 404 | 405) || response.extensions().get::<Shaped>().is_some();
    if routed {
        return response;
    }
    identify(auth, headers, client).await.map_or_else(|refusal| refusal, |_| response)
}

/// The identity of the user whose session a cookie has, if it is good. Credentials in the request count more than a cookie.
pub(crate) fn of_session(
    auth: &Auth,
    sessions: &Sessions,
    presented: &RequestCookie,
    now: Timestamp,
) -> Option<(Identity, Session)> {
    let mut identity = None;
    let proof = |user: &str| {
        let (proof, known) = auth.known(user)?;
        identity = Some(known);
        Some(proof)
    };
    let session = sessions.of_cookie(presented.value.as_deref()?, proof, now)?;
    Some((identity?, session))
}

/// The caller's identity, or the answer that rejects the caller.
pub(crate) async fn identify(
    auth: &Auth,
    headers: &HeaderMap,
    origin: RequestOrigin,
) -> Result<Identity, Response<Body>> {
    let identified = match auth {
        Auth::NoAuth => return Ok(Identity::ADMINISTRATOR),
        Auth::Agents => return Err(elsewhere()),
        Auth::Socket => {
            let user = origin.user.map(|user| format!("uid {}", user.0));
            return Ok(Identity { user, ..Identity::ADMINISTRATOR });
        }
        Auth::Basic(_) | Auth::Token(_) => match basic::credentials(headers) {
            Ok(credentials) => auth.login(credentials, origin.client).await,
            Err(refusal) => Err(refusal),
        },
    };
    identified.map_err(|refusal| {
        let mut response = refusal.into_response();
        if let Auth::Token(token) = auth
            && response.status() == StatusCode::UNAUTHORIZED
            && let Some(file) = token.header()
        {
            response.headers_mut().insert(TOKEN_FILE_HEADER, file);
        }
        if cookie::is_of_a_script(headers) {
            response.headers_mut().remove(header::WWW_AUTHENTICATE);
        }
        response
    })
}

/// Where a request came from.
#[derive(Debug, Clone, Copy)]
pub struct RequestOrigin {
    client: Option<IpAddr>,
    user: Option<LocalUser>,
}

impl RequestOrigin {
    /// As the server has noted it.
    pub fn of(extensions: &Extensions) -> Self {
        Self { client: client_address::of(extensions), user: extensions.get().copied() }
    }
}

fn elsewhere() -> Response<Body> {
    ApiError::client(
        403,
        "Only lookup, heartbeat, inspection, bundles and images of agents are served on this address; use the controller's \
         loopback address, or set [api] auth_strategy = \"http_basic\".",
    )
    .into_response()
}

impl Guard {
    async fn pass(&self, mut request: Request, next: Next) -> Response<Body> {
        let mut presented = RequestCookie::of(request.headers(), request.uri(), self.sessions.by_tls);
        let identity = if self.is_open(request.headers()) {
            Identity::ANONYMOUS
        } else {
            match self.allowed(&mut request, &mut presented).await {
                Ok(identity) => identity,
                Err(refused) => return refused,
            }
        };
        if !takes(self.takes, &request) {
            return ApiError::client(
                415,
                format!("The body of this request must be of type {}.", self.takes),
            )
            .into_response();
        }
        // So that nothing behind this can log it.
        for secret in [header::AUTHORIZATION, header::COOKIE, cookie::CSRF_HEADER] {
            request.headers_mut().remove(secret);
        }
        request.extensions_mut().insert(presented);
        request.extensions_mut().insert(identity.clone());
        // Agents have no grant: what they report is in the history of their node.
        if identity.grant.is_none() || !audit::can_change(request.method()) {
            return next.run(request).await;
        }
        let sender = identity.sender(client_address::of(request.extensions()));
        let id = request.extensions().get::<RequestId>().map(|id| id.as_str().to_owned()).unwrap_or_default();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let asked = RequestSummary::default();
        request.extensions_mut().insert(asked.clone());
        let response = next.run(request).await;
        audit::log(&sender, &id, &method, &path, &asked, response.status().as_u16());
        response
    }

    /// Whether the row is open, or open to agents and this is one; the handler checks the agent's token.
    fn is_open(&self, headers: &HeaderMap) -> bool {
        let is_agent = [NODE_HEADER, TOKEN_HEADER].iter().all(|name| headers.contains_key(*name));
        self.policy == OPEN || (self.agents && is_agent)
    }

    /// The caller, by credentials or by a session.
    async fn caller(
        &self,
        method: &Method,
        headers: &HeaderMap,
        origin: RequestOrigin,
        presented: &mut RequestCookie,
    ) -> Result<Identity, Response<Body>> {
        if !headers.contains_key(header::AUTHORIZATION)
            && let Some((identity, _)) =
                of_session(&self.auth, &self.sessions, presented, self.app.clock.now())
        {
            self.check_site(method, presented).map_err(ApiError::into_response)?;
            presented.counts = true;
            return Ok(identity);
        }
        identify(&self.auth, headers, origin).await
    }

    /// Whether the page itself sent a request that has the cookie of a session: a browser adds the cookie to whatever any page sends.
    fn check_site(&self, method: &Method, presented: &RequestCookie) -> Result<(), ApiError> {
        let refused = |why: &str| Err(ApiError::client(403, why));
        if presented.is_foreign {
            return refused("Requests from other sites are rejected (Sec-Fetch-Site).");
        }
        let cookie = presented.value.as_deref().unwrap_or_default();
        let has_token = presented.csrf.as_deref().is_some_and(|given| self.sessions.is_csrf(cookie, given));
        if cookie::needs_csrf(method) && !has_token {
            return refused(
                "A change in a session needs the token of its login (header anneal-csrf): log in again.",
            );
        }
        Ok(())
    }

    async fn allowed(
        &self,
        request: &mut Request,
        presented: &mut RequestCookie,
    ) -> Result<Identity, Response<Body>> {
        let origin = RequestOrigin::of(request.extensions());
        let identity = self.caller(&self.method, request.headers(), origin, presented).await?;
        if let Some(peer) = request.extensions().get::<Peer>() {
            peer.authenticated();
        }
        let target = match identity.project() {
            // A role of the system does not depend on owners.
            None => Target::Unowned,
            Some(project) => self.target(project, request).await.map_err(ApiError::into_response)?,
        };
        let passes = |policy: &str| match &target {
            Target::Absent => true,
            Target::Unowned => may(policy, &identity, None),
            Target::Owned(owners) => may(policy, &identity, Some(owners)),
            Target::InBody => might(policy, &identity),
        };
        if matches!(target, Target::Absent) {
            request.extensions_mut().insert(TargetNotFound);
        }
        if passes(self.policy) || lesser(self.policy).is_some_and(|lesser| passes(&lesser)) {
            return Ok(identity);
        }
        Err(ApiError::forbidden(self.policy).into_response())
    }

    /// The object of a request by a caller of `project`.
    async fn target(&self, project: &str, request: &mut Request) -> Result<Target, ApiError> {
        let store = scoped_store::of_project(&self.app.store, project);
        let (mut parts, body) = std::mem::take(request).into_parts();
        let params = RawPathParams::from_request_parts(&mut parts, &()).await;
        let query = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let resolver = NodeResolver::of(&parts.extensions);
        *request = Request::from_parts(parts, body);
        let ident = || {
            let params = params.as_ref().ok()?;
            params.iter().next().map(|(_, value)| value.to_owned())
        };
        let node = match self.path {
            "/v1/nodes/validate" => {
                let args = Args::new(query.map(|query| query.0).unwrap_or_default());
                match args.node() {
                    Some(ident) => resolver.node(&*store, ident).await,
                    None => return Ok(Target::Absent),
                }
            }
            path if is_below(path, &["/v1/nodes/{", "/v1/anneal/nodes/{"]) => match ident() {
                Some(ident) => resolver.node(&*store, &ident).await,
                None => return Ok(Target::Absent),
            },
            path if self.method == Method::POST && IN_BODY.contains(&path) => return Ok(Target::InBody),
            path => {
                let kind = RESOURCES.iter().find(|(root, _)| path.starts_with(root)).map(|(_, kind)| *kind);
                let Some(kind) = kind else { return Ok(Target::Unowned) };
                let Some(ident) = ident() else { return Ok(Target::Absent) };
                return match store.resource(kind, &ident).await {
                    Ok(resource) => Ok(Target::Owned(scoped_store::owners(&*store, &resource).await?)),
                    Err(StoreError::NotFound { .. }) => Ok(Target::Absent),
                    Err(error) => Err(error.into()),
                };
            }
        };
        match node {
            Ok(node) => Ok(Target::Owned(Owners::of(&node))),
            // The handler reports why.
            Err(error) if matches!(error.status, 400 | 404) => Ok(Target::Absent),
            Err(error) => Err(error),
        }
    }
}

/// Whether the request has no body, or one of this media type. A page of another site can make a browser send other
/// types, and none, without asking first.
fn takes(media: &str, request: &Request) -> bool {
    let is =
        |given: &str| given.split(';').next().is_some_and(|given| given.trim().eq_ignore_ascii_case(media));
    let given: Vec<_> = request.headers().get_all(header::CONTENT_TYPE).iter().collect();
    let one = matches!(given[..], [given] if given.to_str().is_ok_and(is));
    one || request.body().is_end_stream()
}

/// The object of a request.
enum Target {
    /// Nothing that a project owns, or a whole collection.
    Unowned,
    /// An object of these projects.
    Owned(Owners),
    /// An object that does not exist or that the caller may not see: the handler answers 404.
    Absent,
    /// An object that the body names: the handler checks it ([`crate::call::Call::permit`]).
    InBody,
}

fn is_below(path: &str, roots: &[&str]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}
