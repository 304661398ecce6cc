//! `POST /v1/heartbeat/{ident}`: the agent is alive, and this is how to reach it.
//!
//! Checks come in Ironic's order, so that a client sees the same error for the same fault.

use super::anneal;
use crate::body;
use crate::call::{Call, empty};
use crate::error::{ApiError, Reply};
use crate::token;
use axum::extract::Path;
use axum::http::Uri;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use store::{HeartbeatRecord, StoreError};

/// What a heartbeat may hold.
pub const ARGUMENTS: [&str; 7] = [
    "callback_url",
    "agent_version",
    "agent_token",
    "agent_verify_ca",
    "agent_status",
    "agent_status_message",
    "anneal",
];

/// Longest callback URL and version that are kept, in bytes.
const URL_MAX: usize = 1024;
const VERSION_MAX: usize = 255;

/// `POST /v1/heartbeat/{ident}`: 202 without a body.
pub async fn heartbeat(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let given = call.arguments(&ARGUMENTS)?;
    let callback_url = body::required(&given, "callback_url")?;
    let agent_version = body::text(&given, "agent_version")?;
    let agent_token = body::text(&given, "agent_token")?;
    let verify_ca = body::text(&given, "agent_verify_ca")?;
    let status = body::text(&given, "agent_status")?;
    let status_message = body::text(&given, "agent_status_message")?;

    if !call.version.has(22) {
        return Err(ApiError::not_found());
    }
    if agent_version.is_some() && !call.version.has(36) {
        return Err(ApiError::invalid("Field \"agent_version\" not recognised"));
    }
    if (status.is_some() || status_message.is_some()) && !call.version.has(72) {
        return Err(ApiError::invalid(
            "Fields \"agent_status\" and \"agent_status_message\" not recognised.",
        ));
    }
    if verify_ca.is_some() && !call.version.has(68) {
        return Err(ApiError::invalid("Field \"agent_verify_ca\" not recognised in this version"));
    }
    let node = call.node(&ident).await?;
    let contact = call.app.store.contact(node.uuid).await?;
    let secure = scheme(callback_url)? == "https";
    if contact.callback_url.as_deref().is_some_and(|known| known != callback_url) {
        tracing::warn!(node_uuid = %node.uuid, callback_url, "heartbeat from another callback URL");
        return Err(ApiError::invalid("Detected change in ramdisk provided \"callback_url\""));
    }
    let Some(agent_token) = agent_token else {
        return Err(ApiError::invalid("Agent token is required for heartbeat processing."));
    };
    if status.is_some_and(|status| !["start", "end", "error"].contains(&status)) {
        return Err(ApiError::invalid("Agent status is invalid. Valid states are start,end,error."));
    }
    if agent_version.is_none() && status.is_none() {
        return Err(ApiError::invalid(
            "Agent did not transmit a version, and a version is required. Please update the agent being used.",
        ));
    }
    if !contact.token.as_deref().is_some_and(|known| token::same(known, agent_token)) {
        tracing::warn!(node_uuid = %node.uuid, callback_url, "heartbeat with a wrong agent token");
        return Err(wrong_token());
    }
    if call.app.settings.require_agent_tls && !secure {
        return Err(ApiError::invalid("TLS is required by configuration"));
    }
    if agent_version.is_some_and(|version| version.len() > VERSION_MAX) {
        return Err(ApiError::invalid(format!("agent_version is longer than {VERSION_MAX} bytes")));
    }
    if let Some(pem) = verify_ca
        && CertificateDer::from_pem_slice(pem.as_bytes()).is_err()
    {
        return Err(ApiError::invalid("agent_verify_ca is not a certificate in PEM form"));
    }
    // The certificate is pinned by the first heartbeat of a boot, like the URL.
    if let (Some(known), Some(sent)) = (&contact.verify_ca, verify_ca)
        && known != sent
    {
        tracing::warn!(node_uuid = %node.uuid, "heartbeat with another certificate");
        return Err(ApiError::invalid("Detected change in ramdisk provided \"agent_verify_ca\""));
    }
    let state = given.get("anneal").filter(|value| !value.is_null()).map(anneal::parse).transpose()?;
    // So is the key that one process signs with.
    if let (Some(known), Some(sent)) = (contact.anneal(), &state)
        && known.process_id == sent.process_id
        && known.evidence_key.is_some()
        && known.evidence_key != sent.evidence_key
    {
        tracing::warn!(node_uuid = %node.uuid, "heartbeat with another key for evidence");
        return Err(ApiError::invalid("Detected change in ramdisk provided \"anneal.evidence_key\""));
    }

    let beat = HeartbeatRecord {
        callback_url: callback_url.to_owned(),
        verify_ca: verify_ca.map(str::to_owned).or(contact.verify_ca),
        agent_version: agent_version.map(str::to_owned),
        at: call.now(),
        agent: state.into(),
    };
    match call.app.store.record_heartbeat(node.uuid, agent_token, beat).await {
        Ok(()) => Ok(empty(202, None)),
        // The token was taken back since it was read: the boot it belongs to is over.
        Err(StoreError::Stale(_)) => Err(wrong_token()),
        Err(other) => Err(other.into()),
    }
}

fn wrong_token() -> ApiError {
    ApiError::invalid("Invalid or missing agent token received.")
}

/// The scheme of a URL that the controller can call: http or https, a host, no user, no query. Ironic also
/// takes an empty one, from agents that only talk; nobody could be commanded there.
fn scheme(url: &str) -> Result<&'static str, ApiError> {
    let bad = || ApiError::invalid("An issue with the supplied \"callback_url\" has been detected.");
    if url.len() > URL_MAX {
        return Err(bad());
    }
    let uri: Uri = url.parse().map_err(|_| bad())?;
    let authority = uri.authority().ok_or_else(bad)?;
    if authority.host().is_empty() || authority.as_str().contains('@') || uri.query().is_some() {
        return Err(bad());
    }
    match uri.scheme_str() {
        Some("https") => Ok("https"),
        Some("http") => Ok("http"),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::scheme;

    #[test]
    fn callback_urls() {
        assert_eq!(scheme("https://[fe80::1]:9999").unwrap(), "https");
        assert_eq!(scheme("http://192.0.2.7:9999/").unwrap(), "http");
        for bad in
            ["", "x", "ftp://x", "http://", "//host", "http://user:pw@host/", "http://h/?x=1", "http://a b/"]
        {
            assert!(scheme(bad).is_err(), "{bad}");
        }
        assert!(scheme(&format!("http://{}", "a".repeat(2000))).is_err());
    }
}
