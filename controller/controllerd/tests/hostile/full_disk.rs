//! A full disk. Needs root: the test mounts a small file system.

use crate::controller::{Controller, command, free_port};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted tmpfs.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf, mib: u32) -> Self {
        std::fs::create_dir_all(&at).unwrap();
        let size = format!("size={mib}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at).status();
        assert!(mounted.unwrap().success(), "this test needs root");
        Self(at)
    }

    /// Write a file until nothing fits any more.
    fn fill(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        let mut file = std::fs::File::create(&path).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

async fn status(controller: &Controller, method: &str, path: &str) -> u16 {
    let body =
        (method == "POST").then(|| json!({"driver": "fake-hardware", "extra": {"x": "x".repeat(100_000)}}));
    controller.ask(method, path, body).await.expect("an answer").0
}

async fn started(dir: tempfile::TempDir, disk: &Path) -> Controller {
    let port = free_port();
    let command = command(dir.path(), &format!("\"127.0.0.1:{port}\""), "");
    assert!(disk.starts_with(dir.path()));
    Controller::run(dir, port, command).await
}

#[tokio::test]
async fn on_a_full_disk_reads_and_deletes_work_and_health_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(dir.path().join("state"), 48);
    let controller = started(dir, &disk.0).await;
    controller.make_manageable("n").await;
    assert_eq!(status(&controller, "GET", "/healthcheck").await, 200);

    let filler = disk.fill("filler");
    // What is free within the files of the database is used up, too.
    let mut created = 0;
    while status(&controller, "POST", "/v1/nodes").await == 201 {
        created += 1;
        assert!(created < 1000, "the disk is not full");
        disk.fill("more");
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while status(&controller, "GET", "/healthcheck").await != 503 {
        assert!(std::time::Instant::now() < deadline, "health does not say so: {}", controller.log());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(status(&controller, "GET", "/healthcheck/alive").await, 200);
    assert_eq!(status(&controller, "GET", "/v1/nodes/n").await, 200);
    assert_eq!(status(&controller, "DELETE", "/v1/nodes/n").await, 204, "{}", controller.log());
    assert_eq!(status(&controller, "GET", "/v1/nodes/n").await, 404);

    // Room again, and no restart.
    for file in [filler, disk.0.join("more")] {
        let _ = std::fs::remove_file(file);
    }
    while status(&controller, "GET", "/healthcheck").await != 200 {
        assert!(std::time::Instant::now() < deadline, "it does not recover: {}", controller.log());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    controller.make_manageable("after").await;
    assert!(disk.0.join("anneal.sqlite.reserve").exists(), "the reserve is filled again");
    drop(controller);
}
