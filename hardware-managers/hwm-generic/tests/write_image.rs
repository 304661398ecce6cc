//! The deploy step `write_image` as Ironic's `direct` calls it, on loop devices, from a server on loopback.

use crate::common::{Loop, run};
use crate::step::manager;
use agent_protocol::deployment::WrittenDisk;
use agent_protocol::inventory::Inventory;
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const MIB: u64 = 1 << 20;

/// Serves `file` once to each of `clients`; its URL.
fn serve(file: Vec<u8>, clients: usize) -> String {
    serve_counting(file, clients).0
}

/// [`serve`], and how many clients came.
fn serve_counting(file: Vec<u8>, clients: usize) -> (String, Arc<AtomicUsize>) {
    let came = Arc::new(AtomicUsize::new(0));
    let counter = came.clone();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(clients) {
            counter.fetch_add(1, Ordering::SeqCst);
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", file.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&file));
        }
    });
    (format!("http://{address}/cloud.raw"), came)
}

/// An image with one partition full of data, and its SHA-256.
pub(crate) fn image() -> (Vec<u8>, String) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[vec![0; 1 << 20], vec![0xa5; 14 << 20], vec![0; 1 << 20]].concat()).unwrap();
    let path = file.path().to_str().unwrap();
    run("sgdisk", &["-n", "1:0:0", "-c", "1:root", path]);
    let sum = run("sha256sum", &[path]);
    (std::fs::read(path).unwrap(), sum.split(' ').next().unwrap().to_owned())
}

fn write(disks: &[&Loop], node: Value, args: Value) -> Result<StepOutcome, StepError> {
    write_from(disks, node, args, None)
}

/// [`write`], from a checkpoint on.
fn write_from(
    disks: &[&Loop],
    node: Value,
    args: Value,
    checkpoint: Option<Value>,
) -> Result<StepOutcome, StepError> {
    let manager = manager(disks);
    let steps = manager.steps(StepKind::Deploy, &Inventory::default());
    let step = steps.into_iter().find(|offered| offered.step == "write_image").unwrap();
    assert_eq!((step.interface.as_str(), step.priority.as_f64()), ("deploy", Some(0.0)));
    let args = args.as_object().cloned().unwrap();
    let call = StepCall { kind: StepKind::Deploy, step, args, node, inventory: Arc::default() };
    manager.run(&call, &StepContext::new().resuming(checkpoint))
}

pub(crate) fn info(url: &str, sha256: &str) -> Value {
    json!({
        "id": "cloud.raw", "urls": [url], "disk_format": "raw", "container_format": null,
        "stream_raw_images": true, "os_hash_algo": "sha256", "os_hash_value": sha256,
        "anneal": {"hosts": ["127.0.0.0/8"]},
    })
}

#[test]
fn the_hinted_disk_gets_the_image_and_the_configdrive_and_no_other_is_touched() {
    let (image, sha256) = image();
    let (target, other) = (Loop::sparse(120 * MIB, &[]), Loop::new(&vec![0x5a; 8 << 20]));
    // gzip of "configdrive", as Ironic sends one: gzipped, in base64.
    let drive = "H4sIAAAAAAAC/0vOz0vLTE8pyixLBQBk2ZilCwAAAA==";
    let unpacked = b"configdrive";
    let node = json!({
        "properties": {"root_device": {"name": other.node()}},
        "instance_info": {"root_device": {"name": target.node()}},
    });
    let args = json!({"image_info": info(&serve(image.clone(), 1), &sha256), "configdrive": drive});
    let result = match write(&[&target, &other], node, args) {
        Ok(StepOutcome::Done(result)) => result,
        other => panic!("{other:?}"),
    };
    let said =
        format!("prepare_image: image (cloud.raw) written to device {} root_uuid=0x00000000", target.node());
    assert_eq!(result["result"], json!(said));
    let record = &result["image"]["record"];
    assert_eq!((&record["read_back_sha256"], &record["disk_id"]), (&json!(sha256), &json!("0x00000000")));
    let deployed: WrittenDisk = serde_json::from_value(result["image"].clone()).unwrap();
    let sums = &deployed.record;
    assert_eq!((deployed.device.as_str(), deployed.size), (target.node(), 120 * MIB));
    assert_eq!((sums.read_back, &sums.read_back_sum), (16 * MIB, &sums.written_sum));
    assert_eq!((sums.downloaded, &sums.download_digest), (16 * MIB, &sha256));
    assert!(!result.to_string().contains(drive), "the configdrive is not repeated");
    let edit = record["edits"].as_array().unwrap().iter().find(|edit| edit["what"] == "configdrive").unwrap();
    assert_eq!(target.part(edit["offset"].as_u64().unwrap(), unpacked.len()), unpacked);
    assert_eq!(target.part(2 * MIB, 14 << 20)[..13 << 20], image[2 << 20..15 << 20]);
    assert!(run("sgdisk", &["-v", &target.backing()]).contains("No problems found"));
    assert!(other.outside().iter().all(|&byte| byte == 0x5a));
}

#[test]
fn what_fails_names_its_cause_and_leaves_the_disk_unbootable_or_untouched() {
    let (image, sha256) = image();
    let disk = Loop::new(&vec![0x5a; 32 << 20]);
    let hinted = json!({"instance_info": {"root_device": {"name": disk.node()}}});
    let url = serve(image, 1);
    for (node, info, drive, expected) in [
        (json!({}), info("http://127.0.0.1:1/x", &sha256), Value::Null, "less than 4 GiB"),
        (hinted.clone(), info("http://127.0.0.1:1/x", "zz"), Value::Null, "checksum: the value"),
        (hinted.clone(), info("http://127.0.0.1:1/x", &sha256), json!("?secret"), "not base64"),
        (
            hinted.clone(),
            json!({"urls": ["http://127.0.0.1:1/x"], "checksum": sha256}),
            Value::Null,
            "is a loopback address",
        ),
    ] {
        let error =
            write(&[&disk], node, json!({"image_info": info, "configdrive": drive})).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("secret"), "{error}");
        assert!(disk.outside().iter().all(|&byte| byte == 0x5a), "{expected}");
    }
    let args = json!({"image_info": info(&url, &"0".repeat(64)), "configdrive": null});
    let error = write(&[&disk], hinted, args).unwrap_err().to_string();
    assert!(error.contains("the image was not written: the sha256 of http://127.0.0.1"), "{error}");
    assert!(disk.part(0, 1 << 20).iter().all(|&byte| byte == 0));
}

#[test]
fn what_a_checkpoint_promises_is_not_written_again_unless_the_disk_has_lost_it() {
    let (image, sha256) = image();
    let disk = Loop::new(&vec![0x5a; 32 << 20]);
    let node = json!({"instance_info": {"root_device": {"name": disk.node()}}});
    let written = |checkpoint: bool| {
        let (url, came) = serve_counting(image.clone(), 2);
        let checkpoint = checkpoint.then(|| {
            json!({
                "image": {
                    "url": url, "checksum": sha256, "etag": null, "modified": null, "length": 16 * MIB,
                    "format": "raw", "ranges": false,
                },
                "disk": [format!("{} (no serial)", disk.node()), 32 * MIB], "written": 8 * MIB,
            })
        });
        let args = json!({"image_info": info(&url, &sha256), "configdrive": null});
        let result = match write_from(&[&disk], node.clone(), args, checkpoint) {
            Ok(StepOutcome::Done(result)) => result,
            other => panic!("{other:?}"),
        };
        let record = &result["image"]["record"];
        assert_eq!(record["read_back_sha256"], json!(sha256));
        assert_eq!(disk.part(2 * MIB, 14 << 20)[..13 << 20], image[2 << 20..15 << 20]);
        (came.load(Ordering::SeqCst), record["written"].as_u64().unwrap())
    };
    let (times, all) = written(true);
    assert_eq!(times, 2, "the disk did not hold the first 8 MiB");
    assert_eq!(written(false), (1, all));
    // The first of the eight MiB comes last.
    assert_eq!(written(true), (1, all - 7 * MIB));
}
