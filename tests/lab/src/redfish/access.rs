//! Authentication of the BMC's clients: HTTP Basic, or a session (DSP0266, "Redfish session login authentication").

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Bmc, error};

const TOKEN: &str = "x-auth-token";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// User, password and open sessions.
pub struct Access {
    username: String,
    password: String,
    /// Token by session id.
    sessions: Mutex<BTreeMap<String, String>>,
}

impl Access {
    pub fn new(username: &str, password: &str) -> Self {
        Self { username: username.to_owned(), password: password.to_owned(), sessions: Mutex::default() }
    }

    /// Whether a request shows the password or the token of an open session.
    pub fn allows(&self, headers: &HeaderMap) -> bool {
        if let Some(token) = headers.get(TOKEN) {
            let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            return sessions.values().any(|known| known.as_bytes() == token.as_bytes());
        }
        let basic = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Basic "))
            .and_then(|value| STANDARD.decode(value).ok());
        basic == Some(format!("{}:{}", self.username, self.password).into_bytes())
    }

    fn open(&self) -> Result<(String, String)> {
        let (id, token) = (random()?, random()?);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(id.clone(), token.clone());
        Ok((id, token))
    }
}

fn random() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("no random bytes: {error}"))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// `POST Sessions`.
pub async fn log_in(State(bmc): State<Bmc>, body: Bytes) -> Response {
    let Ok(login) = serde_json::from_slice::<Value>(&body) else {
        return error(StatusCode::BAD_REQUEST, "MalformedJSON", "the body is no JSON");
    };
    let given = |key: &str| login[key].as_str().unwrap_or_default().to_owned();
    if given("UserName") != bmc.access.username || given("Password") != bmc.access.password {
        return error(StatusCode::UNAUTHORIZED, "NoValidSession", "wrong user or password");
    }
    let Ok((id, token)) = bmc.access.open() else {
        return error(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "no random bytes");
    };
    let path = format!("{SESSIONS}/{id}");
    let body = json!({
        "@odata.type": "#Session.v1_3_0.Session",
        "@odata.id": path,
        "Id": id,
        "Name": "Session",
        "UserName": bmc.access.username,
    });
    let headers = [(TOKEN, token), ("location", path)];
    (StatusCode::CREATED, headers, Json(body)).into_response()
}

/// `DELETE Sessions/{id}`.
pub async fn log_out(State(bmc): State<Bmc>, Path(id): Path<String>) -> Response {
    let mut sessions = bmc.access.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    match sessions.remove(&id) {
        Some(_) => StatusCode::NO_CONTENT.into_response(),
        None => error(StatusCode::NOT_FOUND, "ResourceMissingAtURI", "no such session"),
    }
}
