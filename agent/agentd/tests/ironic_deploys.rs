//! What a real Ironic 39 sent to a real agent in recorded deployments is sent to ours, with the manager that writes images, and
//! a loop device as the node's disk. Images and addresses are the test's own, everything else is as it was.

use crate::api;
use crate::loops;

use agent_protocol::inventory::Inventory;
use agentd::executor::Executor;
use agentd::logging::LogRing;
use agentd::login::NoLogin;
use agentd::state::State;
use api::{TOKEN, ask, router};
use axum::Router;
use hwm_generic::GenericHardwareManager;
use loops::{Loop, run};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

#[derive(Deserialize)]
struct Recorded {
    deployment: String,
    wait: bool,
    sent: Value,
    status: u16,
    answer: Value,
}

/// How the step `write_image` of each recorded deployment ends here: `None` succeeds, else the error names this.
/// ironic-python-agent failed with `gz` and `rawnoformat` too, and took the MD5 digest of `nochecksumfmt`.
const ENDS: [(&str, Option<&str>); 8] = [
    ("direct", None),
    ("bios", None),
    ("qcow2", None),
    ("rebuild", None),
    ("gz", None),
    ("rawnoformat", None),
    ("nochecksumfmt", Some("md5 proves nothing; give sha256 or sha512")),
    ("checksum", Some("the image was not written: the sha256 of")),
];

/// Images under the names that the recorded Ironic asked for, and their digests, on a server on loopback.
struct Mirror {
    address: SocketAddr,
    dir: tempfile::TempDir,
}

impl Mirror {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let file = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
        let raw = file("cloud.raw");
        std::fs::File::create(&raw).and_then(|image| image.set_len(16 * MIB)).expect("an image");
        run("sgdisk", &["-n", "1:0:0", "-c", "1:root", &raw]);
        run("qemu-img", &["convert", "-c", "-O", "qcow2", &raw, &file("cloud.qcow2")]);
        run("gzip", &["--keep", &raw]);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let files = dir.path().to_owned();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let first = lines.next().unwrap_or_default();
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let name = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
                let file = std::fs::read(files.join(name)).unwrap_or_default();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", file.len());
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&file));
            }
        });
        Self { address, dir }
    }

    fn sha256(&self, name: &str) -> String {
        let sum = run("sha256sum", &[self.dir.path().join(name).to_str().expect("text")]);
        sum.split(' ').next().expect("a digest").to_owned()
    }

    /// The parameters of a recorded command, for this mirror and this disk.
    fn here(&self, mut params: Value, disk: &Loop, versions: &Value) -> Value {
        let drive = include_str!("fixtures/ironic_deploys.configdrive").trim();
        if params["node"].is_object() {
            params["node"]["properties"]["root_device"] = json!({ "name": disk.node() });
            params["node"]["instance_info"]["configdrive"] = json!(drive);
        }
        // Ironic sends the versions that the agent gave with its steps.
        if let Some(version) = params.get_mut("deploy_version") {
            *version = versions.clone();
        }
        if let Some(args) = params.pointer_mut("/step/args") {
            args["configdrive"] = json!(drive);
            let info = &mut args["image_info"];
            info["configdrive"] = json!(drive);
            let name = info["id"].as_str().expect("the image's name").to_owned();
            info["urls"] = json!([format!("http://{}/{name}", self.address)]);
            if info["os_hash_value"].as_str().is_some_and(|value| !value.trim_matches('0').is_empty()) {
                info["os_hash_value"] = json!(self.sha256(&name));
            }
            // Our controller's member: without it no image comes from this machine itself.
            info["anneal"] = json!({"hosts": ["127.0.0.0/8"]});
        }
        params
    }
}

fn agent(disk: &Loop) -> Router {
    let manager = GenericHardwareManager::new(disk.filter());
    let discover = || Inventory { hostname: "test".into(), ..Inventory::default() };
    let (logs, login) = (LogRing::default(), Box::new(NoLogin));
    router(Executor::new(State::new(None, vec![Arc::new(manager)], Box::new(discover), logs, login, false)))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_real_ironic_sends_in_a_deployment_is_done() {
    let mirror = Mirror::start();
    let lines = include_str!("fixtures/ironic_deploys.jsonl").lines();
    let recorded: Vec<Recorded> = lines.map(|line| serde_json::from_str(line).expect("fixture")).collect();
    let mut ended = Vec::new();
    for (deployment, expected) in ENDS {
        let disk = Loop::sparse(120 * MIB, &[]);
        let (mut router, mut versions) = (None, Value::Null);
        for exchange in recorded.iter().filter(|exchange| exchange.deployment == deployment) {
            let name = exchange.sent["name"].as_str().expect("a name");
            if name == "deploy.get_deploy_steps" {
                // The node was booted.
                router = Some(agent(&disk));
            }
            let router = router.as_ref().expect("an agent");
            let answer = command(router, exchange, |params| mirror.here(params, &disk, &versions)).await;
            match name {
                "deploy.get_deploy_steps" => {
                    versions = answer["command_result"]["hardware_manager_version"].clone();
                    let steps = &answer["command_result"]["deploy_steps"]["generic_hardware_manager"];
                    let all = steps.as_array().expect("steps");
                    let writes = all.iter().find(|step| step["step"] == "write_image").expect("write_image");
                    assert_eq!(writes["priority"], json!(0), "Ironic has a step of that name at 80");
                }
                "deploy.execute_deploy_step" => {
                    judge(deployment, expected, &answer, &disk);
                    ended.push(deployment);
                }
                // It makes a boot entry, in the ramdisk alone: that its parameters are those that Ironic sends is what is
                // seen here.
                "image.install_bootloader" => {
                    assert_ne!(answer["command_error"]["type"], "TypeError", "{answer}")
                }
                _ => assert_eq!(answer["command_status"], "SUCCEEDED", "{deployment} {name}: {answer}"),
            }
        }
    }
    assert_eq!(ended.iter().filter(|name| **name == "rebuild").count(), 3);
    assert!(ENDS.iter().all(|(name, _)| ended.contains(name)), "{ended:?}");
}

/// Sends a command as it was sent, compares what is answered at once, and waits for its end.
async fn command(router: &Router, exchange: &Recorded, here: impl FnOnce(Value) -> Value) -> Value {
    let name = &exchange.sent["name"];
    let body = json!({"name": name, "params": here(exchange.sent["params"].clone())});
    let uri = format!("/v1/commands/?wait={}&agent_token={TOKEN}", exchange.wait);
    let (status, answer, _) = ask(router, "POST", &uri, body.to_string()).await;
    assert_eq!(status, exchange.status, "{name}: {answer}");
    for (member, theirs) in exchange.answer.as_object().expect("an answer") {
        assert_eq!(&answer[member], theirs, "{name}: {member}");
    }
    let id = answer["id"].as_str().expect("an id");
    ask(router, "GET", &format!("/v1/commands/{id}?wait=true&agent_token={TOKEN}"), "").await.1
}

/// The end of `write_image`, and what is on the disk then.
fn judge(deployment: &str, expected: Option<&str>, answer: &Value, disk: &Loop) {
    if let Some(expected) = expected {
        let details = answer["command_error"]["details"].as_str().unwrap_or_default();
        assert_eq!(answer["command_status"], "FAILED", "{deployment}");
        assert!(details.contains(expected), "{deployment}: {details}");
        assert!(disk.part(0, 512).iter().all(|&byte| byte == 0), "{deployment} can be booted");
        return;
    }
    assert_eq!(answer["command_status"], "SUCCEEDED", "{deployment}: {answer}");
    let result = &answer["command_result"]["deploy_result"];
    let text = result["result"].as_str().unwrap_or_default();
    assert!(text.contains("root_uuid=0x00000000"), "{deployment}: {text}");
    let edits = result["image"]["record"]["edits"].as_array().expect("edits");
    let drive = edits.iter().find(|edit| edit["what"] == "configdrive").expect("a configuration drive");
    let drive = disk.part(drive["offset"].as_u64().expect("an offset") + 0x8001, 5);
    assert_eq!(drive, b"CD001", "{deployment}");
    assert!(run("sgdisk", &["-v", &disk.backing()]).contains("No problems found"), "{deployment}");
}
