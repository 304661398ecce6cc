//! Authentication of the BMC's clients: HTTP Basic, or a session (DSP0266, "Redfish session login authentication"), and what the
//! roles of accounts allow ("Privileges").

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Result, anyhow};
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::accounts::{self, Accounts, Role};
use super::{Bmc, collection, error};

const TOKEN: &str = "x-auth-token";
pub(super) const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// Accounts and open sessions.
#[derive(Debug)]
pub struct Access {
    state: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    accounts: Accounts,
    /// By session id.
    sessions: BTreeMap<String, Session>,
}

#[derive(Debug)]
struct Session {
    token: String,
    account: u32,
}

/// The account that asks, and its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) account: u32,
    pub(super) role: Role,
}

impl Access {
    pub fn new(username: &str, password: &str) -> Self {
        let accounts = Accounts::of_administrator(username, password);
        Self { state: Mutex::new(Known { accounts, sessions: BTreeMap::new() }) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works with the accounts. What is decided and done in one call is done at once.
    pub(super) fn accounts<T>(&self, work: impl FnOnce(&mut Accounts) -> T) -> T {
        work(&mut self.known().accounts)
    }

    /// The account whose password a request shows, or the token of an open session of it.
    fn who(&self, headers: &HeaderMap) -> Option<Who> {
        let known = self.known();
        let account = match headers.get(TOKEN) {
            Some(token) => {
                let mut sessions = known.sessions.values();
                sessions.find(|session| session.token.as_bytes() == token.as_bytes())?.account
            }
            None => {
                let basic = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Basic ")?;
                let login = String::from_utf8(STANDARD.decode(basic).ok()?).ok()?;
                let (user, password) = login.split_once(':')?;
                known.accounts.login(user, password)?
            }
        };
        // Sessions of an account that was removed are closed with it.
        Some(Who { account, role: known.accounts.role(account)? })
    }

    fn open(&self, user: &str, password: &str) -> Result<Option<(String, String)>> {
        let (id, token) = (random()?, random()?);
        let mut known = self.known();
        let Some(account) = known.accounts.login(user, password) else { return Ok(None) };
        known.sessions.insert(id.clone(), Session { token: token.clone(), account });
        Ok(Some((id, token)))
    }

    fn session(&self, id: &str) -> Option<Value> {
        let known = self.known();
        let account = known.sessions.get(id)?.account;
        Some(session(id, known.accounts.name(account)?))
    }
}

fn random() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("no random bytes: {error}"))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

fn session(id: &str, user: &str) -> Value {
    json!({
        "@odata.type": "#Session.v1_3_0.Session",
        "@odata.id": format!("{SESSIONS}/{id}"),
        "Id": id,
        "Name": "Session",
        "UserName": user,
    })
}

/// Lets a request pass whose sender is known and may do it.
pub(super) async fn guard(State(bmc): State<Bmc>, mut request: Request, next: Next) -> Response {
    let Some(who) = bmc.access.who(request.headers()) else {
        let mut refused = error(StatusCode::UNAUTHORIZED, "NoValidSession", "wrong user or password");
        let realm = HeaderValue::from_static("Basic realm=\"Redfish\"");
        refused.headers_mut().insert(header::WWW_AUTHENTICATE, realm);
        return refused;
    };
    if !may(who, request.method(), request.uri().path()) {
        return error(
            StatusCode::FORBIDDEN,
            "InsufficientPrivilege",
            "the role of the account does not allow it",
        );
    }
    request.extensions_mut().insert(who);
    next.run(request).await
}

/// Each account reads everything and changes itself; operators change the machine, administrators everything.
fn may(who: Who, method: &Method, path: &str) -> bool {
    if matches!(*method, Method::GET | Method::HEAD) || who.role == Role::Administrator {
        return true;
    }
    let is_own = path == accounts::path(who.account) && method == Method::PATCH;
    let is_session = path.starts_with(SESSIONS);
    let is_account = path.starts_with(accounts::SERVICE);
    is_own || is_session || (who.role == Role::Operator && !is_account)
}

/// `GET Sessions`.
pub(super) async fn sessions(State(bmc): State<Bmc>) -> Json<Value> {
    let known = bmc.access.known();
    let paths: Vec<String> = known.sessions.keys().map(|id| format!("{SESSIONS}/{id}")).collect();
    collection(SESSIONS, "Session", &paths.iter().map(String::as_str).collect::<Vec<_>>())
}

/// `GET Sessions/{id}`.
pub(super) async fn show(State(bmc): State<Bmc>, Path(id): Path<String>) -> Response {
    match bmc.access.session(&id) {
        Some(session) => Json(session).into_response(),
        None => no_session(),
    }
}

fn no_session() -> Response {
    error(StatusCode::NOT_FOUND, "ResourceMissingAtURI", "no such session")
}

/// `POST Sessions`.
pub(super) async fn log_in(State(bmc): State<Bmc>, body: Bytes) -> Response {
    let Ok(login) = serde_json::from_slice::<Value>(&body) else {
        return error(StatusCode::BAD_REQUEST, "MalformedJSON", "the body is no JSON");
    };
    let given = |key: &str| login[key].as_str().unwrap_or_default();
    match bmc.access.open(given("UserName"), given("Password")) {
        Ok(Some((id, token))) => {
            let headers = [(TOKEN, token), ("location", format!("{SESSIONS}/{id}"))];
            (StatusCode::CREATED, headers, Json(session(&id, given("UserName")))).into_response()
        }
        Ok(None) => error(StatusCode::UNAUTHORIZED, "NoValidSession", "wrong user or password"),
        Err(cause) => error(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &format!("{cause:#}")),
    }
}

/// `DELETE Sessions/{id}`.
pub(super) async fn log_out(
    State(bmc): State<Bmc>,
    Extension(who): Extension<Who>,
    Path(id): Path<String>,
) -> Response {
    let mut known = bmc.access.known();
    let Some(session) = known.sessions.get(&id) else { return no_session() };
    if session.account != who.account && who.role != Role::Administrator {
        return error(StatusCode::FORBIDDEN, "InsufficientPrivilege", "it is the session of another account");
    }
    known.sessions.remove(&id);
    StatusCode::NO_CONTENT.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_allow_no_more_than_they_say() {
        let may = |role, method, path: &str| may(Who { account: 2, role }, &method, path);
        let (system, own, other) = ("/redfish/v1/Systems/1", accounts::path(2), accounts::path(1));
        assert!(may(Role::ReadOnly, Method::GET, system) && !may(Role::ReadOnly, Method::PATCH, system));
        assert!(may(Role::ReadOnly, Method::PATCH, &own) && !may(Role::ReadOnly, Method::DELETE, &own));
        assert!(may(Role::Operator, Method::POST, system) && !may(Role::Operator, Method::PATCH, &other));
        assert!(may(Role::Administrator, Method::PATCH, &other));
    }
}
