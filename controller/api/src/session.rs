//! `/v1/anneal/session`: login and logout of the web page. An extension of Anneal's, so no microversion guards it.

use crate::auth::basic::BasicAuthError;
use crate::auth::cookie::{CSRF_HEADER, RequestCookie};
use crate::auth::guard::of_session;
use crate::auth::{Auth, Identity};
use crate::body;
use crate::call::{Call, empty, json};
use crate::endpoint::{Endpoint, OPEN, rows};
use crate::error::{ApiError, Reply};
use crate::format::{at, iso};
use axum::Extension;
use axum::body::Body;
use axum::http::{Response, header};
use axum::response::IntoResponse;
use serde_json::{Value, json};

/// Endpoints of sessions.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/anneal/session" 1 OPEN, "how a browser logs in, and whether it is" => show;
        POST "/v1/anneal/session" 1 OPEN, "log a browser in" => log_in;
        DELETE "/v1/anneal/session" 1 OPEN, "log it out" => log_out;
        POST "/v1/anneal/session/links" 1 "anneal:session:link", "a link that logs a browser in, once" => make_link;
    ];
    rows.into_iter().map(Endpoint::own).collect()
}

/// `GET …`.
async fn show(
    Extension(auth): Extension<Auth>,
    Extension(presented): Extension<RequestCookie>,
    call: Call,
) -> Reply {
    check(&call)?;
    let login = match auth {
        Auth::Basic(_) => "password",
        Auth::Token(_) => "link",
        Auth::NoAuth | Auth::Agents | Auth::Socket => "none",
    };
    let known = of_session(&auth, &call.app.sessions, &presented, call.now());
    let user = known.as_ref().and_then(|(identity, _)| identity.user.clone());
    let expires_at = known.as_ref().map(|(_, session)| session.expires_at);
    let is_in = login == "none" || known.is_some();
    Ok(json(
        200,
        &json!({"login": login, "authenticated": is_in, "user": user, "expires_at": at(expires_at)}),
    ))
}

/// `POST …` with `user` and `password`, or with the token of a `link`.
async fn log_in(
    Extension(auth): Extension<Auth>,
    Extension(presented): Extension<RequestCookie>,
    call: Call,
) -> Reply {
    check_change(&call, &presented)?;
    let given = call.arguments(&["user", "password", "link"])?;
    let text = |name: &str| body::text(&given, name);
    let (now, sessions) = (call.now(), &call.app.sessions);
    let user = match (text("user")?, text("password")?, text("link")?) {
        (Some(user), Some(password), None) => {
            match auth.login((user.to_owned(), password.into()), call.client()).await {
                Ok(identity) => identity.user,
                Err(refusal) => return Ok(refused(&refusal)),
            }
        }
        (None, None, Some(token)) => sessions.take_link(token, now).ok_or_else(|| {
            ApiError::client(
                401,
                "This link was used, or is older than a minute: \"anneal ui\" prints another.",
            )
        })?,
        _ => {
            return Err(ApiError::invalid("A login needs \"user\" and \"password\", or \"link\" alone."));
        }
    };
    let user = user.unwrap_or_default();
    let Some((proof, identity)) = auth.known(&user) else {
        return Err(ApiError::client(401, "There is no such user, or no login is needed here."));
    };
    let session = sessions.begin(&user, &proof, now).ok_or_else(|| ApiError::internal("a session"))?;
    let address = call.client().map(|address| address.to_string());
    tracing::info!(target: "audit", user = %user, address, request_id = call.request_id, "login to the page");
    let mut shown = who(&identity);
    shown["csrf"] = session.csrf.clone().into();
    shown["expires_at"] = iso(session.expires_at).into();
    let mut response = json(201, &shown);
    if let Some(cookie) = presented.given(&session) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// `DELETE …`.
async fn log_out(
    Extension(auth): Extension<Auth>,
    Extension(presented): Extension<RequestCookie>,
    call: Call,
) -> Reply {
    check_change(&call, &presented)?;
    let sessions = &call.app.sessions;
    if let Some((_, session)) = of_session(&auth, sessions, &presented, call.now()) {
        let (cookie, csrf) = (presented.value.as_deref(), presented.csrf.as_deref());
        if !sessions.is_csrf(cookie.unwrap_or_default(), csrf.unwrap_or_default()) {
            return Err(ApiError::client(
                403,
                format!("A logout needs the token of its login ({CSRF_HEADER})."),
            ));
        }
        sessions.end(&session, call.now());
    }
    let mut response = empty(204, None);
    if let Some(cookie) = presented.taken() {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// `POST …/links`: not for a session, which could prolong itself.
async fn make_link(
    Extension(auth): Extension<Auth>,
    Extension(presented): Extension<RequestCookie>,
    call: Call,
) -> Reply {
    check(&call)?;
    call.arguments(&[])?;
    if presented.counts {
        return Err(ApiError::client(403, "A session cannot make a link for another session."));
    }
    let sessions = &call.app.sessions;
    let Some(origin) = sessions.loopback() else {
        return Err(ApiError::conflict(
            "This controller listens at no address on loopback ([api] listen), where a link could lead.",
        ));
    };
    let page = format!("{origin}/ui/");
    // Without authentication there is nothing to log in to.
    if matches!(auth, Auth::NoAuth) {
        return Ok(json(201, &json!({"url": page, "expires_at": null})));
    }
    let made = sessions.link(call.identity.user.clone(), call.now());
    let (token, until) = made.ok_or_else(|| ApiError::internal("a link to the page"))?;
    // Browsers do not send what stands behind #: it gets into no log.
    Ok(json(201, &json!({"url": format!("{page}#link={token}"), "expires_at": iso(until)})))
}

/// The answer to a wrong login, without the header that makes a browser ask for a password by itself.
fn refused(refusal: &BasicAuthError) -> Response<Body> {
    let (status, message) = refusal.answer();
    let mut response = ApiError::client(status.as_u16(), message).into_response();
    if let Some(seconds) = refusal.wait() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// The caller, as the page shows it.
pub(crate) fn who(identity: &Identity) -> Value {
    let role = identity.grant.as_ref().map(|grant| grant.role.as_str());
    json!({"user": identity.user, "role": role, "project": identity.project()})
}

/// No argument is given, and there are sessions here.
fn check(call: &Call) -> Result<(), ApiError> {
    call.args.only(&[])?;
    match call.app.sessions.are_on() {
        true => Ok(()),
        false => {
            Err(ApiError::client(404, "This address serves no page and has no sessions ([ui] enabled)."))
        }
    }
}

/// The same, and the request comes from the page.
fn check_change(call: &Call, presented: &RequestCookie) -> Result<(), ApiError> {
    check(call)?;
    match presented.is_foreign {
        true => Err(ApiError::client(403, "Requests from other sites are rejected (Sec-Fetch-Site).")),
        false => Ok(()),
    }
}
