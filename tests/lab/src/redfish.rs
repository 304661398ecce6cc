//! A BMC: Redfish (DMTF DSP0266 protocol, DSP0268 schemas) in front of one [`Machine`].
//!
//! Written against the specification and sharing nothing with `controller/bmc`, so that the two judge
//! each other. Basic and session authentication; HTTP, or HTTPS with a certificate of its own.

mod access;
mod accounts;
mod bios;
pub mod media;
mod protocol;
mod secure_boot;
mod system;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::machine::Machine;
use access::Access;
use media::{Media, MediaQuirks};

/// How a BMC is reached.
#[derive(Debug, Clone)]
pub struct BmcConfig {
    /// Where it listens; port 0 takes a free one.
    pub address: SocketAddr,
    /// User name.
    pub username: String,
    /// Password.
    pub password: String,
    /// HTTPS instead of HTTP.
    pub tls: bool,
}

/// A running BMC. Dropping it stops the service; the machine goes on.
#[derive(Debug)]
pub struct RedfishBmc {
    address: SocketAddr,
    certificate: Option<String>,
    media: Arc<Media>,
    _server: AbortOnDropHandle<()>,
}

/// What the handlers share.
#[derive(Clone)]
struct Bmc {
    machine: Machine,
    access: Arc<Access>,
    media: Arc<Media>,
}

impl RedfishBmc {
    /// Starts the service.
    ///
    /// # Errors
    /// When the address is taken or no certificate can be made.
    pub async fn start(machine: Machine, config: BmcConfig) -> Result<Self> {
        Self::start_with(machine, config, MediaQuirks::default()).await
    }

    /// Starts the service, with virtual media like this.
    ///
    /// # Errors
    /// As [`RedfishBmc::start`].
    pub async fn start_with(machine: Machine, config: BmcConfig, quirks: MediaQuirks) -> Result<Self> {
        let listener = TcpListener::bind(config.address)
            .await
            .with_context(|| format!("BMC cannot listen on {}", config.address))?;
        let address = listener.local_addr()?;
        let access = Arc::new(Access::new(&config.username, &config.password));
        let media = Arc::new(Media::new(quirks, address.ip()));
        let app = router(Bmc { machine, access, media: Arc::clone(&media) });
        let (server, certificate) = if config.tls {
            let (listener, certificate) = crate::tls::self_signed(listener, address.ip())?;
            (tokio::spawn(report(axum::serve(listener, app))), Some(certificate))
        } else {
            (tokio::spawn(report(axum::serve(listener, app))), None)
        };
        Ok(Self { address, certificate, media, _server: AbortOnDropHandle::new(server) })
    }

    /// `http://ADDRESS:PORT` or `https://…`, Ironic's `redfish_address`.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Its self-signed certificate in PEM, with HTTPS.
    #[must_use]
    pub fn certificate(&self) -> Option<&str> {
        self.certificate.as_deref()
    }

    /// URLs of the media in its virtual drives, by drive.
    #[must_use]
    pub fn inserted_media(&self) -> std::collections::BTreeMap<String, String> {
        self.media.inserted()
    }

    /// Path of the machine's ComputerSystem, Ironic's `redfish_system_id`.
    #[must_use]
    pub fn system_id() -> &'static str {
        system::PATH
    }
}

async fn report(server: impl IntoFuture<Output = std::io::Result<()>>) {
    if let Err(error) = server.await {
        tracing::error!(%error, "BMC stopped");
    }
}

fn router(bmc: Bmc) -> Router {
    let drives = bmc.media.quirks.collection();
    let empty = bmc.media.quirks.collection_of_system().filter(|path| *path != drives);
    let has_secure_boot = bmc.machine.spec().secure_boot.is_some();
    let guarded = Router::new()
        .route(drives, get(media::list))
        .route(&format!("{drives}/{{id}}"), get(media::show).patch(media::patch))
        .route(&format!("{drives}/{{id}}/InsertMediaActionInfo"), get(media::action_info))
        .route(&format!("{drives}/{{id}}/Actions/VirtualMedia.InsertMedia"), post(media::insert))
        .route(&format!("{drives}/{{id}}/Actions/VirtualMedia.EjectMedia"), post(media::eject))
        .route("/redfish/v1/Systems", get(systems))
        .route("/redfish/v1/Managers", get(managers))
        .route("/redfish/v1/Managers/1", get(manager))
        .route("/redfish/v1/Chassis", get(chassis))
        .route("/redfish/v1/SessionService", get(session_service))
        .route(access::SESSIONS, get(access::sessions))
        .route(&format!("{}/{{id}}", access::SESSIONS), get(access::show).delete(access::log_out))
        .route(accounts::SERVICE, get(accounts::service))
        .route(accounts::ROLES, get(accounts::roles))
        .route(&format!("{}/{{name}}", accounts::ROLES), get(accounts::show_role))
        .route(accounts::ACCOUNTS, get(accounts::list).post(accounts::create))
        .route(
            &format!("{}/{{id}}", accounts::ACCOUNTS),
            get(accounts::show).patch(accounts::patch).delete(accounts::remove),
        )
        .route(system::PATH, get(system::show).patch(system::patch))
        .route(system::RESET_PATH, post(system::reset))
        .route(bios::PATH, get(bios::show))
        .route(bios::SETTINGS, get(bios::pending).patch(bios::patch))
        .route(bios::RESET, post(bios::reset))
        .merge(empty.map_or_else(Router::new, |path| Router::new().route(path, get(media::list_none))))
        .merge(if has_secure_boot { secure_boot::routes() } else { Router::new() })
        .route_layer(middleware::from_fn_with_state(bmc.clone(), access::guard));
    // DSP0266: the version list, the service root, the OData documents and logging in are open to all.
    Router::new()
        .route("/redfish", get(async || Json(json!({"v1": "/redfish/v1/"}))))
        .route("/redfish/v1", get(root))
        .route("/redfish/v1/", get(root))
        .route("/redfish/v1/odata", get(protocol::odata))
        .route("/redfish/v1/$metadata", get(protocol::metadata))
        .route(access::SESSIONS, post(access::log_in))
        .route(&format!("{}/Members", access::SESSIONS), post(access::log_in))
        .merge(guarded)
        .fallback(async || error(StatusCode::NOT_FOUND, "ResourceMissingAtURI", "no such resource"))
        .layer(middleware::from_fn(protocol::speak))
        .with_state(bmc)
}

async fn root() -> impl IntoResponse {
    let document = json!({
        "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
        "@odata.id": "/redfish/v1/",
        "Id": "RootService",
        "Name": "Lab BMC",
        "RedfishVersion": "1.11.0",
        "UUID": "92384634-2938-2342-8820-489239905423",
        "Systems": {"@odata.id": "/redfish/v1/Systems"},
        "Managers": {"@odata.id": "/redfish/v1/Managers"},
        "Chassis": {"@odata.id": "/redfish/v1/Chassis"},
        "SessionService": {"@odata.id": "/redfish/v1/SessionService"},
        "AccountService": {"@odata.id": accounts::SERVICE},
        "ProtocolFeaturesSupported": {"ExcerptQuery": false, "FilterQuery": false, "OnlyMemberQuery": false,
            "SelectQuery": false},
        "Links": {"Sessions": {"@odata.id": access::SESSIONS}},
    });
    ([(header::ALLOW, "GET, HEAD")], Json(document))
}

fn collection(path: &str, kind: &str, members: &[&str]) -> Json<Value> {
    let members: Vec<Value> = members.iter().map(|m| json!({"@odata.id": m})).collect();
    Json(json!({
        "@odata.type": format!("#{kind}Collection.{kind}Collection"),
        "@odata.id": path,
        "Name": format!("{kind} collection"),
        "Members@odata.count": members.len(),
        "Members": members,
    }))
}

async fn systems() -> Json<Value> {
    collection("/redfish/v1/Systems", "ComputerSystem", &[system::PATH])
}

async fn managers() -> Json<Value> {
    collection("/redfish/v1/Managers", "Manager", &["/redfish/v1/Managers/1"])
}

async fn chassis() -> Json<Value> {
    collection("/redfish/v1/Chassis", "Chassis", &[])
}

async fn session_service() -> Json<Value> {
    Json(json!({
        "@odata.type": "#SessionService.v1_1_8.SessionService",
        "@odata.id": "/redfish/v1/SessionService",
        "Id": "SessionService",
        "Name": "Sessions",
        "ServiceEnabled": true,
        "Sessions": {"@odata.id": access::SESSIONS},
    }))
}

async fn manager(State(bmc): State<Bmc>) -> Json<Value> {
    let mut manager = json!({
        "@odata.type": "#Manager.v1_11_0.Manager",
        "@odata.id": "/redfish/v1/Managers/1",
        "Id": "1",
        "Name": "Lab BMC",
        "ManagerType": "BMC",
        "FirmwareVersion": env!("CARGO_PKG_VERSION"),
        "Links": {"ManagerForServers": [{"@odata.id": system::PATH}]},
    });
    if bmc.media.quirks.below_manager {
        manager["VirtualMedia"] = json!({"@odata.id": bmc.media.quirks.collection()});
    }
    Json(manager)
}

/// A Redfish error body (DSP0266, "Error responses").
fn error(status: StatusCode, key: &str, message: &str) -> Response {
    let id = format!("Base.1.8.{key}");
    let info = json!([{"MessageId": id, "Message": message, "Severity": "Warning"}]);
    let body = json!({"error": {"code": id, "message": message, "@Message.ExtendedInfo": info}});
    (status, Json(body)).into_response()
}
