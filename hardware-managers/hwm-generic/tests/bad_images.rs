//! Images, mirrors and disks with which `write_image` cannot succeed, on loop devices: the cause in one sentence without a
//! secret, and a disk that is as it was or cannot be booted. What takes a mirror's time limits is in image-writer's tests, and
//! so are certificates.

use crate::common::{Loop, SmallRoom, run};
use crate::write_image::{image, info, serve, sha256, write};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpListener;

const SIZE: usize = 32 << 20;
const OLD: u8 = 0x5a;

/// The step with this image fails and says so; whether a byte of the disk was written.
fn fails(disk: &Loop, info: &Value, says: &str) -> bool {
    let node = json!({"instance_info": {"root_device": {"name": disk.node()}}});
    fails_on(disk, node, info, says)
}

fn fails_on(disk: &Loop, node: Value, info: &Value, says: &str) -> bool {
    let args = json!({"image_info": info, "configdrive": null});
    let error = write(&[disk], node, args).expect_err(says).to_string();
    assert!(error.contains(says), "{says:?} is not in: {error}");
    assert!(!error.contains('\n') && !error.contains("secret"), "{error}");
    let now = disk.outside();
    let written = now.iter().any(|&byte| byte != OLD);
    let ends = [&now[..1 << 20], &now[now.len() - 33 * 512..]];
    assert!(!written || ends.iter().all(|end| end.iter().all(|&byte| byte == 0)), "bootable after: {error}");
    written
}

fn old() -> Loop {
    Loop::new(&vec![OLD; SIZE])
}

/// What the tool makes of the content.
fn made(tool: &str, words: &[&str], content: &[u8]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    std::fs::write(&from, content).unwrap();
    let words: Vec<&str> = words
        .iter()
        .map(|word| {
            [("FROM", &from), ("TO", &to)]
                .iter()
                .find(|(name, _)| word == name)
                .map_or(*word, |(_, path)| path)
        })
        .collect();
    run(tool, &words);
    std::fs::read(if std::path::Path::new(&to).exists() { to } else { from }).unwrap()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    made("sh", &["-c", "gzip -1 < \"$0\" > \"$1\"", "FROM", "TO"], content)
}

fn qcow2(content: &[u8]) -> Vec<u8> {
    made("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", "FROM", "TO"], content)
}

#[test]
fn images_that_are_cut_off_corrupt_or_hostile_fail_with_their_cause() {
    let (raw, _) = image();
    let packed = gzip(&raw);
    let mut corrupt = packed.clone();
    let middle = corrupt.len() / 2;
    corrupt[middle..middle + 64].fill(0xff);
    // The first table of a qcow2 file; its second tables; its backing file.
    let tables = |at: usize, value: u64| {
        let mut file = qcow2(&raw);
        file[at..at + 8].copy_from_slice(&value.to_be_bytes());
        file
    };
    let first = usize::try_from(u64::from_be_bytes(qcow2(&raw)[40..48].try_into().unwrap())).unwrap();
    for (file, says) in [
        (packed[..packed.len() / 2].to_vec(), "the gzip stream of the image"),
        (corrupt, "the gzip stream of the image"),
        (raw[..8 << 20].to_vec(), "the partition table of the image"),
        // A bomb: less than 100 kB.
        (gzip(&vec![0; 96 << 20]), "the image has more bytes"),
        (tables(40, 1 << 55), "the qcow2 file is corrupt"),
        (tables(first, 1 << 50 | 1 << 63), "the qcow2 file is corrupt"),
        (tables(8, 200), "it has a backing file; merge it"),
    ] {
        let digest = sha256(&file);
        let mut info = info(&serve(file, 1), &digest);
        info["disk_format"] = Value::Null;
        fails(&old(), &info, says);
    }
}

#[test]
fn what_is_known_before_the_first_byte_writes_none() {
    let (raw, digest) = image();
    let disk = old();
    let hint = json!({"instance_info": {"root_device": {"serial": "NO SUCH DISK"}}});
    let good = info("http://127.0.0.1:1/x", &digest);
    assert!(!fails_on(&disk, hint, &good, "no disk matches the root device hints"));

    let small = Loop::new(&vec![OLD; 8 << 20]);
    let packed = qcow2(&raw);
    for file in [raw, packed] {
        let digest = sha256(&file);
        let mut info = info(&serve(file, 1), &digest);
        info["disk_format"] = Value::Null;
        assert!(!fails(&small, &info, "the image has 16777216 bytes"));
    }

    let missing = answering("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    let url = missing.replace("http://", "http://me:secret@");
    assert!(!fails(&disk, &info(&url, &digest), "http://******@127.0.0.1"));
    assert!(!fails(&disk, &info(&missing, &digest), "answered 404"));
    // What answers there speaks no TLS.
    let https = missing.replace("http://", "https://");
    assert!(!fails(&disk, &info(&https, &digest), "TLS"));
}

#[test]
fn a_disk_that_cannot_be_written_is_named_with_the_place() {
    let (raw, digest) = image();
    let room = SmallRoom::new();
    let disk = Loop::failing(&room, SIZE as u64);
    let node = json!({"instance_info": {"root_device": {"name": disk.node()}}});
    let args = json!({"image_info": info(&serve(raw, 1), &digest), "configdrive": null});
    let error = write(&[&disk], node, args).unwrap_err().to_string();
    let place = format!("the image was not written: {} (no serial): write of ", disk.node());
    assert!(error.contains(&place) && error.contains(" at byte "), "{error}");
    assert!(disk.part(0, 1 << 20).iter().all(|&byte| byte == 0), "bootable after: {error}");
}

/// A server that answers every request so; its URL.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/image", listener.local_addr().unwrap());
    // Ends with the test's process.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            let _ = std::io::Read::read(&mut stream, &mut request)
                .and_then(|_| stream.write_all(answer.as_bytes()));
        }
    });
    url
}
