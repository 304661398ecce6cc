//! A large archive of logs passes through the controller to the disk. It is the only test of this process, whose memory it
//! measures.

use conductor::Settings;
use conductor::agent_client::AgentClient;
use conductor::log_archive::LogArchive;
use model::Contact;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Bytes of the archive; as base64, a third more.
const ARCHIVE: usize = 45 << 20;
/// Most bytes of memory that receiving it may cost.
const MOST: u64 = 8 << 20;

/// The most resident memory since it was last forgotten, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// An agent that answers one request with an archive of zeros, never whole in memory here either.
async fn agent() -> (SocketAddr, impl Future<Output = ()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            stream.read_buf(&mut request).await.unwrap();
        }
        let head = r#"{"id":"1","command_name":"collect_system_logs","command_status":"SUCCEEDED","command_result":{"system_logs":""#;
        let tail = r#""}}"#;
        let packed = ARCHIVE / 3 * 4;
        let length = head.len() + packed + tail.len();
        let http = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{head}");
        stream.write_all(http.as_bytes()).await.unwrap();
        let piece = [b'A'; 4096];
        assert!(packed.is_multiple_of(piece.len()));
        for _ in 0..packed / piece.len() {
            stream.write_all(&piece).await.unwrap();
        }
        stream.write_all(tail.as_bytes()).await.unwrap();
    };
    (address, serving)
}

#[tokio::test]
async fn a_large_archive_is_never_whole_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings {
        logs_directory: dir.path().join("logs"),
        logs_max_mib: 48,
        logs_min_free_mib: 0,
        ..Settings::default()
    };
    let archive = LogArchive::of(&settings);
    let name = format!("{}_2026-11-23-12-00-00_clean.tar.gz", uuid::Uuid::nil());
    let collected = async || {
        let (address, serving) = agent().await;
        let contact = Contact {
            token: Some("t".into()),
            callback_url: Some(format!("http://{address}")),
            ..Contact::default()
        };
        let agents = AgentClient::new(Duration::from_secs(60));
        let (kept, ()) = tokio::join!(agents.collect_logs(&contact, &archive, &name), serving);
        kept.unwrap();
    };
    // What the first call sets up is not what a call costs.
    collected().await;
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak();
    collected().await;
    let cost = peak() - before;
    let kept = std::fs::metadata(settings.logs_directory.join(&name)).unwrap();
    assert_eq!(kept.len(), u64::try_from(ARCHIVE).unwrap());
    assert!(cost < MOST, "{cost} bytes");
}
