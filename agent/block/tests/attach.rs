//! A file as a block device: what is in it, read-only, as long as it is in use. Needs root.

use block::attach::attach;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;

#[test]
fn a_file_is_a_read_only_device_until_its_last_user_is_gone() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[vec![1; 8192], vec![2; 100]].concat()).unwrap();
    let device = attach(&file, 8192).unwrap();
    let name = device.path().file_name().unwrap().to_str().unwrap().to_owned();
    let attribute =
        |name: &str, what: &str| fs::read_to_string(Path::new("/sys/block").join(name).join(what));
    assert_eq!(attribute(&name, "ro").unwrap().trim(), "1");
    let mut content = Vec::new();
    fs::File::open(device.path()).unwrap().read_to_end(&mut content).unwrap();
    assert!(content == vec![1; 8192], "{} bytes, and not what was asked for", content.len());
    let written =
        fs::OpenOptions::new().write(true).open(device.path()).and_then(|mut it| it.write_all(&[3; 4096]));
    assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    // Two at a time are two.
    let other = attach(&file, 4096).unwrap();
    assert_ne!(device.path(), other.path());
    drop(device);
    // The kernel may take a moment; another test may take the number, for another file.
    let inode = |name: &str| attribute(name, "loop/backing_file");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while inode(&name).is_ok_and(|path| path.contains("(deleted)") && path.contains("/.tmp")) {
        assert!(std::time::Instant::now() < deadline, "{name} still has its file");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(other);
}
