//! Boot HTTP: plain, because firmware and iPXE as packaged know no certificate of ours. The ramdisk pins the controller's
//! certificate by the kernel command line. The nonce in a boot script is a secret of one boot, which an attacker who reads the
//! nodes' Ethernet can read, too.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::Extension;
use axum::Router;
use axum::extract::{Path as UrlPath, Query, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http_server::{ClientAddress, Clients, Server, file};
use serde::Deserialize;
use tokio::fs::File;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::medium::{Media, MediumConfig, RamdiskFiles};
use crate::script::script;
use crate::{BootDirectory, BootError, HelloAnswer, Mac, MediumAnswer, loaders};

/// How long downloads going on may take after the shutdown was asked for.
const DRAIN: Duration = Duration::from_secs(2);

/// Where to listen, and what to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// Address and port.
    pub listen: SocketAddr,
    /// How nodes reach this service: `http://10.9.0.1:8080`, put into the scripts.
    pub base_url: String,
    /// What nodes boot.
    pub ramdisk: RamdiskFiles,
    /// Directory of the loaders; see [`loaders::NAMES`].
    pub loader_dir: PathBuf,
    /// What boot media are made of besides.
    pub medium: MediumConfig,
}

/// A server with its socket open.
pub struct Http {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    clients: Clients,
}

impl Http {
    /// Open the socket.
    ///
    /// # Errors
    /// The address is in use or not ours.
    pub async fn bind(
        config: HttpConfig,
        directory: Arc<dyn BootDirectory>,
        clients: Clients,
    ) -> Result<Self, BootError> {
        let error = |source| BootError::Io {
            service: "http",
            action: format!("listen on {}", config.listen),
            source,
        };
        let listener = TcpListener::bind(config.listen).await.map_err(error)?;
        let address = listener.local_addr().map_err(error)?;
        Ok(Self { listener, address, router: router(config, directory), clients })
    }

    /// Where it listens, with the port the system chose for port 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serve until `shutdown`, and then a little longer for downloads going on.
    pub async fn run(self, shutdown: CancellationToken) {
        tracing::info!(address = %self.address, "http: serving boot files");
        let Self { listener, router, clients, .. } = self;
        if !(Server { listener: listener.into(), tls: None, router, clients }).run(shutdown, DRAIN).await {
            tracing::info!("http: some downloads were not finished");
        }
    }
}

#[derive(Clone)]
struct App {
    config: Arc<HttpConfig>,
    media: Arc<Media>,
    directory: Arc<dyn BootDirectory>,
}

/// The routes, for those who serve them on a listener of their own.
pub fn router(config: HttpConfig, directory: Arc<dyn BootDirectory>) -> Router {
    let media = Arc::new(Media::new(config.medium.clone(), config.ramdisk.clone()));
    Router::new()
        // A HEAD would take the script without delivering it.
        .route("/boot/ipxe", get(ipxe).head(async || StatusCode::METHOD_NOT_ALLOWED))
        .route("/boot/{name}", get(boot_download))
        .route("/boot/media/{name}", get(self::medium))
        .route("/boot/firmware/{name}", get(firmware_download))
        // cloud-init sends GET when it has nothing to say but the URL.
        .route("/hello/{nonce}", get(hello).post(hello).head(async || StatusCode::METHOD_NOT_ALLOWED))
        .with_state(App { config: Arc::new(config), media, directory })
}

#[derive(Deserialize)]
struct Who {
    mac: Option<String>,
}

fn text(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

async fn ipxe(
    State(app): State<App>,
    client: Option<Extension<ClientAddress>>,
    Query(who): Query<Who>,
) -> Response {
    let mac = match who.mac.as_deref().unwrap_or_default().parse::<Mac>() {
        Ok(mac) => mac,
        Err(error) => return text(StatusCode::BAD_REQUEST, format!("mac: {error}\n")),
    };
    let from = client.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Extension(client)| client.0);
    let answer = app.directory.boot_for(mac, from).await;
    match script(&app.config.base_url, mac, &answer) {
        Ok(script) => {
            app.served(Some(mac), "ipxe").await;
            let headers = [(header::CACHE_CONTROL, "no-store")];
            (headers, text(StatusCode::OK, script)).into_response()
        }
        Err(error) => {
            tracing::error!(%mac, %error, "http: no script");
            text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
        }
    }
}

/// An instance says that it runs. The body, if there is one, is not read; the nonce stands in no log.
async fn hello(
    State(app): State<App>,
    client: Option<Extension<ClientAddress>>,
    UrlPath(nonce): UrlPath<String>,
) -> Response {
    let from = client.map(|Extension(client)| client.0);
    let (status, says) = match app.directory.hello(&nonce, from).await {
        HelloAnswer::Heard => (StatusCode::OK, "hello\n"),
        HelloAnswer::NotAwaited => (StatusCode::NOT_FOUND, "no such page\n"),
        HelloAnswer::TooMany => (StatusCode::TOO_MANY_REQUESTS, "too many requests; try again later\n"),
        HelloAnswer::Failed => (StatusCode::SERVICE_UNAVAILABLE, "try again later\n"),
    };
    ([(header::CACHE_CONTROL, "no-store")], text(status, says.to_owned())).into_response()
}

/// What a BMC inserts. Its URL is a secret of the boot: neither it nor its file name stands in a log.
async fn medium(
    State(app): State<App>,
    client: Option<Extension<ClientAddress>>,
    UrlPath(name): UrlPath<String>,
    headers: HeaderMap,
) -> Response {
    let from = client.map(|Extension(client)| client.0);
    let (overlay, content, program_alone) = match app.directory.medium(&name, from).await {
        MediumAnswer::Medium { overlay, content, program_alone } => (overlay, content, program_alone),
        MediumAnswer::NotThere => return text(StatusCode::NOT_FOUND, "no such page\n".to_owned()),
        MediumAnswer::Failed => {
            return text(StatusCode::SERVICE_UNAVAILABLE, "try again later\n".to_owned());
        }
    };
    match app.media.answer(&overlay, &content, program_alone, &headers).await {
        Ok(answer) => ([(header::CACHE_CONTROL, "no-store")], answer).into_response(),
        Err(error) => {
            tracing::error!(%error, "http: no boot medium");
            text(StatusCode::INTERNAL_SERVER_ERROR, "no boot medium can be made\n".to_owned())
        }
    }
}

async fn boot_download(
    State(app): State<App>,
    method: Method,
    UrlPath(name): UrlPath<String>,
    Query(who): Query<Who>,
    headers: HeaderMap,
) -> Response {
    let path = match name.as_str() {
        "vmlinuz" => app.config.ramdisk.kernel.clone(),
        "initramfs" => app.config.ramdisk.initramfs.clone(),
        "rescue" => app.config.ramdisk.rescue.clone(),
        name => match loaders::file(&app.config.loader_dir, name) {
            Some(path) => path,
            None => return text(StatusCode::NOT_FOUND, "no such boot file\n".to_owned()),
        },
    };
    app.answer(&path, &name, &method, who, &headers).await
}

/// An archive of add-on firmware.
async fn firmware_download(
    State(app): State<App>,
    method: Method,
    UrlPath(name): UrlPath<String>,
    Query(who): Query<Who>,
    headers: HeaderMap,
) -> Response {
    match app.config.ramdisk.firmware.as_ref().and_then(|firmware| firmware.file(&name)) {
        Some(path) => app.answer(&path, "firmware", &method, who, &headers).await,
        None => text(StatusCode::NOT_FOUND, "no such boot file\n".to_owned()),
    }
}

impl App {
    /// A boot file, `name` for those who measure boots.
    async fn answer(
        &self,
        path: &Path,
        name: &str,
        method: &Method,
        who: Who,
        headers: &HeaderMap,
    ) -> Response {
        match send(path, headers).await {
            Ok(response) => {
                // UEFI asks with HEAD first, for the size.
                if response.status().is_success() && *method == Method::GET {
                    self.served(who.mac.and_then(|mac| mac.parse().ok()), name).await;
                }
                response
            }
            Err(error) => {
                tracing::error!(file = %path.display(), %error, "http: cannot read a boot file");
                text(StatusCode::NOT_FOUND, format!("{name} is not there: {}\n", error.kind()))
            }
        }
    }

    async fn served(&self, mac: Option<Mac>, file: &str) {
        let mac = mac.map(|mac| mac.to_string());
        tracing::info!(mac = mac.as_deref(), file, "http: first byte served");
        self.directory.first_byte(mac.as_deref(), file).await;
    }
}

/// A file as a stream, or the range of it that was asked for.
async fn send(path: &Path, headers: &HeaderMap) -> std::io::Result<Response> {
    let file = File::open(path).await?;
    let metadata = file.metadata().await?;
    let length = metadata.len();
    let age = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let etag = format!("\"{length:x}-{:x}\"", age.as_nanos());
    file::answer(file.into_std().await, length, &etag, headers)
}
