//! Keys of Secure Boot (DSP0268: SecureBoot, SecureBootDatabase, Certificate): enrolled, deleted, and those of the factory. All of it
//! is in force from the next start on.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};

use super::{Redfish, system};
use crate::certificates::{Certificate, certificates};
use crate::declared::{Arg, Declared, StepCall, StepEnd};
use crate::{BmcError, ErrorKind, Settings, small_file};

/// Databases in the order in which they are written: the platform key ends the setup mode, in which the others can be.
const DATABASES: [&str; 3] = ["db", "KEK", PLATFORM];
/// The database that has one certificate.
const PLATFORM: &str = "PK";
const DELETE: &str = "delete_existing";
const ENROLL: &str = "enroll Secure Boot keys";

const PEM: &str = r#"{"type": "string", "minLength": 1, "maxLength": 65536}"#;

pub(crate) const SECURE_BOOT_STEPS: &[Declared] = &[
    Declared::new("enroll_secure_boot_keys", |call, settings| Box::pin(enroll(call, settings)))
        .clean(0.0)
        .deploy(0)
        .args(&[
            Arg {
                name: "PK",
                description: "The platform key: a certificate in PEM, instead of PK.crt in the controller's directory.",
                required: false,
                schema: PEM,
            },
            Arg {
                name: "KEK",
                description: "Keys that may change the lists: certificates in PEM, instead of KEK.crt.",
                required: false,
                schema: PEM,
            },
            Arg {
                name: "db",
                description: "Keys that sign programs: certificates in PEM, instead of db.crt.",
                required: false,
                schema: PEM,
            },
            Arg {
                name: DELETE,
                description: "true: deletes all keys that are there before; false (the default): adds to them.",
                required: false,
                schema: r#"{"type": "boolean"}"#,
            },
        ])
        .idempotent()
        .reboot(),
    Declared::new("clear_secure_boot_keys", |call, settings| Box::pin(clear(call, settings)))
        .clean(0.0)
        .deploy(0)
        .idempotent()
        .reboot(),
    Declared::new("reset_secure_boot_keys_to_default", |call, settings| Box::pin(to_default(call, settings)))
        .clean(0.0)
        .deploy(0)
        .idempotent()
        .reboot(),
];

impl Redfish {
    /// The SecureBoot resource.
    async fn secure_boot(&self, action: &str) -> Result<Value, BmcError> {
        let system = self.system(action).await?.body;
        let path = system::link(system.get("SecureBoot"))
            .ok_or_else(|| self.client.error(ErrorKind::Unsupported, action, "it offers no secure boot"))?;
        Ok(self.client.get(action, path).await?.body)
    }

    /// Asks for `ResetKeys` of this type.
    async fn reset_keys(&self, action: &str, secure_boot: &Value, kind: &str) -> Result<(), BmcError> {
        let (target, allowed) = reset_keys_action(secure_boot).ok_or_else(|| {
            self.client.error(ErrorKind::Unsupported, action, "it offers no reset of Secure Boot keys")
        })?;
        if allowed.as_ref().is_some_and(|allowed| !allowed.iter().any(|known| known == kind)) {
            return Err(self.offers_only(action, allowed.as_deref()));
        }
        let body = json!({ "ResetKeysType": kind });
        let reply = self.client.request(action, Method::POST, target, Some(&body), None).await?;
        self.client.succeeded(action, &reply)?;
        self.watch(action, reply).await
    }

    /// The collections of certificates of those databases that are wanted, in their order.
    async fn collections(&self, secure_boot: &Value, wanted: &[&str]) -> Result<Vec<String>, BmcError> {
        let unsupported = |why: &str| self.client.error(ErrorKind::Unsupported, ENROLL, why);
        let path = system::link(secure_boot.get("SecureBootDatabases")).ok_or_else(|| {
            unsupported("it offers no databases of Secure Boot keys (SecureBootDatabases): enroll them in the firmware's setup")
        })?;
        let all = self.client.get(ENROLL, path).await?.body;
        let mut found: Vec<Option<String>> = vec![None; wanted.len()];
        for member in system::members(&all) {
            if found.iter().all(Option::is_some) {
                break;
            }
            let database = self.client.get(ENROLL, member).await?.body;
            if let Some(index) = wanted.iter().position(|name| is_called(&database, name)) {
                found[index] = system::link(database.get("Certificates")).map(str::to_owned);
            }
        }
        let named = wanted.iter().zip(found).map(|(name, found)| {
            found.ok_or_else(|| unsupported(&format!("it offers no certificates of the database {name}")))
        });
        named.collect()
    }

    /// The certificates of a collection, as far as the BMC shows them.
    async fn shown(&self, collection: &str) -> Result<Vec<Certificate>, BmcError> {
        let all = self.client.get(ENROLL, collection).await?.body;
        let mut shown = Vec::new();
        for member in system::members(&all) {
            let text = self.client.get(ENROLL, member).await?.body;
            let text = text.get("CertificateString").and_then(Value::as_str).unwrap_or_default();
            shown.extend(certificates(text).unwrap_or_default());
        }
        Ok(shown)
    }
}

/// All that is in the way is found before the first write.
async fn enroll(call: &StepCall<'_>, settings: &Arc<Settings>) -> Result<StepEnd, BmcError> {
    let redfish = Redfish::new(call.driver_info, settings)?;
    let wanted = wanted(call, settings).await.map_err(|why| wrong(call, &why))?;
    let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
    let secure_boot = redfish.secure_boot(ENROLL).await?;
    let collections = redfish.collections(&secure_boot, &names).await?;
    let deletes = call.args.get(DELETE).and_then(Value::as_bool).unwrap_or_default();
    let mut present = Vec::new();
    for (name, collection) in names.iter().zip(&collections) {
        let shown = if deletes { Vec::new() } else { redfish.shown(collection).await? };
        let own = &wanted[present.len()].1;
        if *name == PLATFORM && shown.iter().any(|there| !own.contains(there)) {
            let why = format!("the node has another platform key: {DELETE} deletes it, and all other keys");
            return Err(wrong(call, &why));
        }
        present.push(shown);
    }
    if deletes {
        redfish.reset_keys(ENROLL, &secure_boot, "DeleteAllKeys").await?;
    }
    let (mut added, mut already) = (json!({}), json!({}));
    for (((name, own), collection), shown) in wanted.iter().zip(&collections).zip(&present) {
        let (there, missing): (Vec<_>, Vec<_>) = own.iter().partition(|one| shown.contains(one));
        for certificate in &missing {
            let body = json!({"CertificateString": certificate.pem(), "CertificateType": "PEM"});
            let reply = redfish.client.request(ENROLL, Method::POST, collection, Some(&body), None).await?;
            redfish.client.succeeded(ENROLL, &reply)?;
            redfish.watch(ENROLL, reply).await?;
        }
        (added[*name], already[*name]) = (missing.len().into(), there.len().into());
    }
    let now = redfish.secure_boot(ENROLL).await?;
    let enabled = now.get("SecureBootEnable").cloned().unwrap_or_default();
    Ok(StepEnd::Done(json!({"added": added, "already_there": already, "secure_boot_enabled": enabled})))
}

async fn clear(call: &StepCall<'_>, settings: &Arc<Settings>) -> Result<StepEnd, BmcError> {
    reset(call, settings, ("delete the Secure Boot keys", "DeleteAllKeys", "no Secure Boot keys")).await
}

async fn to_default(call: &StepCall<'_>, settings: &Arc<Settings>) -> Result<StepEnd, BmcError> {
    let words =
        ("reset the Secure Boot keys", "ResetAllKeysToDefault", "the Secure Boot keys of the factory");
    reset(call, settings, words).await
}

async fn reset(
    call: &StepCall<'_>,
    settings: &Arc<Settings>,
    (action, kind, after): (&str, &str, &str),
) -> Result<StepEnd, BmcError> {
    let redfish = Redfish::new(call.driver_info, settings)?;
    let secure_boot = redfish.secure_boot(action).await?;
    redfish.reset_keys(action, &secure_boot, kind).await?;
    Ok(StepEnd::Done(json!({ "after_reboot": after })))
}

/// The certificates of each database that the step names, or the controller has a file of; in the order of [`DATABASES`]. `Err` is what is
/// wrong with them.
async fn wanted(
    call: &StepCall<'_>,
    settings: &Settings,
) -> Result<Vec<(&'static str, Vec<Certificate>)>, String> {
    let mut wanted = Vec::new();
    for name in DATABASES {
        let (place, text) = match call.args.get(name).and_then(Value::as_str) {
            Some(text) => (format!("argument {name}"), text.to_owned()),
            None => {
                let path = settings.secure_boot_keys_directory.join(format!("{name}.crt"));
                if !path.exists() {
                    continue;
                }
                let place = format!("{name}.crt in the directory of bmc.secure_boot_keys_directory");
                let read = tokio::task::spawn_blocking(move || small_file::read(&path)).await;
                let bytes =
                    read.unwrap_or(Err("it cannot be read")).map_err(|why| format!("{place}: {why}"))?;
                (place, String::from_utf8_lossy(&bytes).into_owned())
            }
        };
        let found = certificates(&text).map_err(|why| format!("{place}: {why}"))?;
        if found.is_empty() {
            return Err(format!("{place}: it contains no certificate"));
        }
        if name == PLATFORM && found.len() > 1 {
            return Err(format!(
                "{place}: it contains {} certificates; there is one platform key",
                found.len()
            ));
        }
        wanted.push((name, found));
    }
    if wanted.is_empty() {
        return Err(format!(
            "no keys are given: neither an argument nor a file PK.crt, KEK.crt or db.crt in the directory of bmc.{}",
            "secure_boot_keys_directory"
        ));
    }
    Ok(wanted)
}

fn wrong(call: &StepCall<'_>, why: &str) -> BmcError {
    let message = format!("{} step {}.{}: {why}", call.kind.as_str(), call.interface, call.step);
    BmcError::new(ErrorKind::Step, "", "run a step", message)
}

/// Databases have their UEFI name as `DatabaseId`, and with some makers only as `Id`.
fn is_called(database: &Value, name: &str) -> bool {
    let word = |key: &str| database.get(key).and_then(Value::as_str);
    word("DatabaseId").or_else(|| word("Id")).is_some_and(|known| known.eq_ignore_ascii_case(name))
}

/// Where a reset of keys is posted, and which types the BMC says it has.
fn reset_keys_action(secure_boot: &Value) -> Option<(&str, Option<Vec<String>>)> {
    let action = secure_boot.get("Actions")?.get("#SecureBoot.ResetKeys")?;
    let target = action.get("target")?.as_str().filter(|path| super::config::is_path(path))?;
    Some((target, system::strings(action.get("ResetKeysType@Redfish.AllowableValues"))))
}
