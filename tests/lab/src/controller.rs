//! The controller under test, as its own process with its own configuration, and callers of its API.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::process::Command;

use crate::binaries::{binary, image_dir};
use crate::process::{Daemon, leashed};
use crate::{tls, wait};

const START_LIMIT: Duration = Duration::from_secs(60);
/// Ironic's newest microversion that the API is asked with.
const MICROVERSION: &str = "1.95";

/// Arguments that spare an emulated processor work that no scenario looks at: a sixth of the time until the agent starts.
pub const QUICK_KERNEL: &str = "mitigations=off nokaslr";

/// Configuration of a controller.
#[derive(Debug, Clone)]
pub struct ControllerConfig {
    /// State, configuration and log.
    pub dir: PathBuf,
    /// Address on the bridge: the nodes' way to the API (TLS) and to the boot services. Without one
    /// there are no boot services and the API is on loopback alone.
    pub address: Option<Ipv4Addr>,
    /// Address of IPv6 there, which nodes and BMCs can use as well, or alone.
    pub ipv6_address: Option<Ipv6Addr>,
    /// Whether it gives nodes their addresses and boot loaders (DHCP, TFTP).
    pub dhcp: bool,
    /// Directory of kernel and initramfs, where they are not the image's own.
    pub image: Option<PathBuf>,
    /// More TOML for the configuration file, for example a `[conductor]` section.
    pub extra: String,
}

/// A running controller.
#[derive(Debug)]
pub struct Controller {
    config: ControllerConfig,
    daemon: Option<Daemon>,
    client: Client,
}

impl ControllerConfig {
    /// Its addresses off loopback; that of IPv4 comes first.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.address.map(IpAddr::V4).into_iter().chain(self.ipv6_address.map(IpAddr::V6))
    }

    fn text(&self) -> Result<String> {
        let mut listen = vec!["127.0.0.1:6385".to_owned()];
        listen.extend(self.addresses().map(|address| SocketAddr::new(address, 6385).to_string()));
        let mut boot = String::new();
        if let Some(first) = self.addresses().next() {
            let image = self.image.clone().map_or_else(image_dir, Ok)?;
            let ca = self.mirror_ca();
            let ca = if ca.is_file() { format!("ca_file = {ca:?}\n") } else { String::new() };
            // The extra lines that follow may be of [boot].
            boot = format!(
                "[images]\nhosts = [\"{first}\"]\n{ca}\
                 [boot]\nenabled = true\ninterface = \"br0\"\n\
                 kernel = {:?}\ninitramfs = {:?}\nrescue = {:?}\nmedium_loader_dir = {:?}\n\
                 consoles = [\"ttyS0\"]\ntftp = {}\n{}{}",
                image.join("vmlinuz"),
                image.join("initramfs"),
                image.join("rescue"),
                image.join("medium"),
                self.dhcp,
                self.boot_addresses(),
                self.kernel_append(),
            );
        }
        let (state, ca, extra) = (self.dir.join("state"), self.bmc_ca(), &self.extra);
        let keys = self.secure_boot_keys();
        Ok(format!(
            "state_dir = {state:?}\nhost = \"lab\"\n[api]\nlisten = {listen:?}\n\
             [bmc]\nca_directory = {ca:?}\nsecure_boot_keys_directory = {keys:?}\n{boot}{extra}"
        ))
    }

    /// Lines of the scenario's own replace it.
    fn kernel_append(&self) -> String {
        if self.extra.contains("kernel_append") {
            return String::new();
        }
        format!("kernel_append = {QUICK_KERNEL:?}\n")
    }

    /// The settings of `[boot]` for each address.
    fn boot_addresses(&self) -> String {
        let mut lines = String::new();
        if let Some(address) = self.address {
            let [a, b, c, _] = address.octets();
            let dhcp = if self.dhcp { "server" } else { "off" };
            lines += &format!(
                "address = \"{address}\"\ndhcp = {dhcp:?}\ndhcp_first = \"{a}.{b}.{c}.100\"\ndhcp_last = \"{a}.{b}.{c}.199\"\n"
            );
        }
        if let Some(address) = self.ipv6_address {
            // Next to DHCP of IPv4 it is not served.
            let dhcpv6 = self.dhcp && self.address.is_none();
            lines += &format!("ipv6_address = \"{address}\"\ndhcpv6 = {dhcpv6}\n");
        }
        lines
    }

    /// Directory of the files that `redfish_verify_ca` names.
    #[must_use]
    pub fn bmc_ca(&self) -> PathBuf {
        self.dir.join("bmc-ca")
    }

    /// Directory of the certificates that it enrolls in firmware.
    #[must_use]
    pub fn secure_boot_keys(&self) -> PathBuf {
        self.dir.join("secure-boot-keys")
    }

    /// File of the authorities of mirrors, for a story that writes it before the start.
    #[must_use]
    pub fn mirror_ca(&self) -> PathBuf {
        self.dir.join("mirror-ca.pem")
    }

    /// Path of the configuration file.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.dir.join("anneal-controller.toml")
    }

    /// Path of the log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.dir.join("controller.log")
    }
}

impl Controller {
    /// Starts it and waits until the API answers.
    ///
    /// # Errors
    /// When it was not built, ends at once, or does not answer within a minute; with the end of its log.
    pub async fn start(config: ControllerConfig) -> Result<Self> {
        std::fs::create_dir_all(config.bmc_ca())?;
        std::fs::write(config.file(), config.text()?)
            .with_context(|| format!("cannot write {}", config.file().display()))?;
        // Another user of this process may have installed the same provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().timeout(Duration::from_secs(30)).build()?;
        let mut controller = Self { config, daemon: None, client };
        controller.restart().await?;
        Ok(controller)
    }

    /// Starts the process again after [`Controller::kill`], on the same state.
    ///
    /// # Errors
    /// As [`Controller::start`].
    pub async fn restart(&mut self) -> Result<()> {
        let mut command = leashed(binary("anneal-controller")?);
        command.arg("--config").arg(self.config.file()).env("NO_COLOR", "1");
        let log = self.config.log();
        let daemon = self.daemon.insert(Daemon::start("anneal-controller", command, &log)?);
        let client = &self.client;
        let answer = wait::until("the controller's API", START_LIMIT, async || {
            daemon.ensure_alive()?;
            Ok(client.get(format!("{}/v1", Self::local())).send().await.ok())
        });
        answer.await.map(drop)
    }

    /// SIGKILL, as a crash.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub async fn kill(&mut self) -> Result<()> {
        match self.daemon.take() {
            Some(daemon) => daemon.kill().await,
            None => Ok(()),
        }
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &ControllerConfig {
        &self.config
    }

    /// Its API on loopback (plain HTTP, in this network namespace).
    #[must_use]
    pub fn local() -> &'static str {
        "http://127.0.0.1:6385"
    }

    /// The address that agents use, with the pin of its certificate.
    ///
    /// # Errors
    /// When it has no address outside, or no certificate yet.
    pub fn public(&self) -> Result<(String, String)> {
        let address = self.config.address.context("the controller is on loopback only")?;
        let pin = pin(&self.config.dir.join("state/tls/controller.crt"))?;
        Ok((format!("https://{address}:6385"), pin))
    }

    /// The token of its operators.
    fn token(&self) -> Result<String> {
        let file = self.config.dir.join("state/operator.token");
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(text.trim_end().to_owned())
    }

    /// Largest resident memory so far, in bytes.
    ///
    /// # Errors
    /// When it does not run.
    pub fn peak_memory(&self) -> Result<u64> {
        self.daemon.as_ref().context("the controller does not run")?.peak_memory()
    }

    /// The `anneal` command, on loopback: outside, the controller serves agents only.
    ///
    /// # Errors
    /// When it was not built.
    pub fn cli(&self) -> Result<Command> {
        let mut command = leashed(binary("anneal")?);
        command.env("ANNEAL_ENDPOINT", Self::local());
        Ok(command)
    }

    /// Runs `anneal` with these words and returns what it printed.
    ///
    /// # Errors
    /// When it does not end with 0; what it said is in the error.
    pub async fn anneal(&self, words: &[&str]) -> Result<String> {
        let out = self.cli()?.args(words).output().await.context("cannot start anneal")?;
        if !out.status.success() {
            let said = String::from_utf8_lossy(&out.stderr);
            bail!("anneal {} ended with {}: {}", words.join(" "), out.status, said.trim());
        }
        Ok(String::from_utf8(out.stdout)?)
    }

    /// Any call of the API on loopback: status and body (`null` when there is none).
    ///
    /// # Errors
    /// When there is no answer at all.
    pub async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<(StatusCode, Value)> {
        let mut request = self
            .client
            .request(method, format!("{}{path}", Self::local()))
            .basic_auth("lab", Some(self.token()?))
            .header("X-OpenStack-Ironic-API-Version", MICROVERSION);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.with_context(|| format!("no answer to {path}"))?;
        let status = answer.status();
        let text = answer.text().await?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    /// `GET` that has to succeed.
    ///
    /// # Errors
    /// When the answer is no success.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let (status, body) = self.call(Method::GET, path, None).await?;
        ensure!(status.is_success(), "GET {path}: {status} {body}");
        Ok(body)
    }

    /// A node by name or UUID.
    ///
    /// # Errors
    /// When there is none.
    pub async fn node(&self, ident: &str) -> Result<Value> {
        self.get(&format!("/v1/nodes/{ident}")).await
    }

    /// Asks for a verb.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn provision(&self, ident: &str, verb: &str) -> Result<()> {
        self.provision_with(ident, json!({"target": verb})).await
    }

    /// Asks for a verb with what comes along: `{"target": "clean", "clean_steps": […]}`.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn provision_with(&self, ident: &str, request: Value) -> Result<()> {
        let path = format!("/v1/nodes/{ident}/states/provision");
        let verb = request["target"].to_string();
        let (status, body) = self.call(Method::PUT, &path, Some(request)).await?;
        ensure!(status == StatusCode::ACCEPTED, "{verb} of {ident}: {status} {body}");
        Ok(())
    }

    /// Sets fields of a node: `{"/automated_clean": false}`.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn set(&self, ident: &str, fields: Value) -> Result<()> {
        let fields = fields.as_object().cloned().unwrap_or_default();
        let patch: Value =
            fields.iter().map(|(path, value)| json!({"op": "add", "path": path, "value": value})).collect();
        let (status, body) = self.call(Method::PATCH, &format!("/v1/nodes/{ident}"), Some(patch)).await?;
        ensure!(status.is_success(), "changing {ident}: {status} {body}");
        Ok(())
    }

    /// Waits until a node is in one of these provision states, and returns it.
    ///
    /// # Errors
    /// When `limit` passes; the node as last seen is in the error.
    pub async fn node_in(&self, ident: &str, states: &[&str], limit: Duration) -> Result<Value> {
        let what = format!("{ident} to be {}", states.join(" or "));
        let mut last = Value::Null;
        let found = wait::until(&what, limit, async || {
            // A controller that is being restarted does not answer.
            let Ok(node) = self.node(ident).await else { return Ok(None) };
            last = node.clone();
            let state = node["provision_state"].as_str().unwrap_or_default();
            Ok(states.contains(&state).then_some(node))
        });
        let found = found.await;
        found.with_context(|| {
            format!(
                "{ident} is {}, last_error {}, {}",
                last["provision_state"], last["last_error"], last["driver_internal_info"]["anneal"]["wait"]
            )
        })
    }
}

/// `sha256:…` of the DER in a PEM file with one certificate.
fn pin(file: &Path) -> Result<String> {
    let hex: String = Sha256::digest(tls::der(file)?).iter().map(|b| format!("{b:02x}")).collect();
    Ok(format!("sha256:{hex}"))
}
