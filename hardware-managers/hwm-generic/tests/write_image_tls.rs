//! `write_image` with an image, its digests and a configuration drive on mirrors with certificates.

use crate::authority::Authority;
use crate::common::Loop;
use crate::step::manager;
use crate::tls_mirror::Mirror;
use crate::write_image::{image, info};
use agent_protocol::inventory::Inventory;
use hwm_generic::MirrorTrust;
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepKind};
use serde_json::{Value, json};
use std::sync::Arc;

const HOST: &str = "127.0.0.1";

/// Writes to `disk`, by an agent that was started with this trust.
fn write(disk: &Loop, own: MirrorTrust, args: &Value) -> Result<(), String> {
    let manager = manager(&[disk]).trusting(own);
    let steps = manager.steps(StepKind::Deploy, &Inventory::default());
    let step = steps.into_iter().find(|offered| offered.step == "write_image").unwrap();
    let node = json!({"instance_info": {"root_device": {"name": disk.node()}}});
    let args = args.as_object().cloned().unwrap();
    let call = StepCall { kind: StepKind::Deploy, step, args, node, inventory: Arc::default() };
    manager.run(&call, &StepContext::new()).map(drop).map_err(|error| error.to_string())
}

#[test]
fn image_digests_and_drive_come_from_mirrors_that_are_trusted() {
    let (image, sha256) = image();
    let (ours, other) = (Authority::new(), Authority::new());
    let certificate = ours.signs(HOST);
    let [image, sums, drive] = [image, format!("{sha256}  cloud.raw\n").into_bytes(), vec![0; 2048]]
        .map(|file| Mirror::good(&certificate, &file));
    let ca_file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(ca_file.path(), &ours.pem).unwrap();
    let own = MirrorTrust::CaFile(ca_file.path().to_owned());
    let pins = json!({HOST: [certificate.pin.to_string()]});
    // What a controller sends, what the agent was started with, and what is refused.
    for (sent, own, refused) in [
        (json!({"ca": ours.pem}), MirrorTrust::None, None),
        (json!({"pins": pins}), MirrorTrust::None, None),
        (json!({"pin": certificate.pin.to_string()}), MirrorTrust::None, None),
        (json!({}), own.clone(), None),
        (json!({}), MirrorTrust::Any, None),
        (json!({}), MirrorTrust::None, Some("neither [images] ca_file nor [images.pins]")),
        (json!({"ca": other.pem}), MirrorTrust::Any, Some("is not signed by an authority")),
        (json!({"pins": {"m.example": pins[HOST]}}), own, Some("neither [images] ca_file nor [images.pins]")),
    ] {
        let disk = Loop::new(&vec![0x5a; 120 << 20]);
        let mut info = info(&image.url("/cloud.raw"), "");
        info["os_hash_value"] = json!(sums.url("/SHA256SUMS"));
        info["anneal"]["hosts"] = json!(["127.0.0.0/8"]);
        info["anneal"].as_object_mut().unwrap().extend(sent.as_object().cloned().unwrap());
        let asked = image.seen().len();
        let args = json!({"image_info": info, "configdrive": drive.url("/drive?key=secret")});
        let written = write(&disk, own, &args);
        match refused {
            None => assert_eq!(written, Ok(()), "{sent}"),
            Some(why) => {
                let said = written.expect_err(why);
                assert!(said.contains(why) && !said.contains("secret"), "{said}");
                assert!(disk.outside().iter().all(|&byte| byte == 0x5a), "{sent}");
                assert_eq!(image.seen().len(), asked, "{sent}");
            }
        }
    }
}
