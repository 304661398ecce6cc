//! Boot media over a real socket on loopback: whole, by HEAD and in ranges, as BMCs read them.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use boot::http::{Http, HttpConfig};
use boot::medium::MediumConfig;
use boot::{BootAnswer, BootDirectory, CancellationToken, Mac, MediumAnswer, Overlay};
use http_server::{Clients, Limits, Places, Timeouts};
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, RANGE};

const NAME: &str = "anneal-node-digest.iso";

struct Directory;

#[async_trait]
impl BootDirectory for Directory {
    async fn boot_for(&self, _: Mac, _: IpAddr) -> BootAnswer {
        BootAnswer::Unknown
    }

    async fn medium(&self, file_name: &str, from: Option<IpAddr>) -> MediumAnswer {
        assert_eq!(from, Some(IpAddr::from([127, 0, 0, 1])), "where the request came from");
        match file_name {
            NAME | "rescue.iso" => MediumAnswer::Medium {
                overlay: Overlay::new("anneal.boot-nonce=SECRET", None).unwrap(),
                rescue: file_name == "rescue.iso",
            },
            "failed.iso" => MediumAnswer::Failed,
            _ => MediumAnswer::NotThere,
        }
    }
}

/// The header of an EFI program with room for more sections.
fn stub() -> Vec<u8> {
    let mut stub = vec![0; 4096];
    let mut put = |at: usize, bytes: &[u8]| stub[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x3c, &0x80_u32.to_le_bytes());
    put(0x80, b"PE\0\0");
    put(0x94, &240_u16.to_le_bytes());
    put(0x98 + 60, &0x400_u32.to_le_bytes());
    stub
}

/// The URL of the media, and what ends the service.
async fn serving(dir: &Path) -> (String, tokio_util::sync::DropGuard) {
    serving_program(dir, None).await
}

/// The same, with a signed program.
async fn serving_program(dir: &Path, signed_uki: Option<PathBuf>) -> (String, tokio_util::sync::DropGuard) {
    let file = |name: &str, content: &[u8]| std::fs::write(dir.join(name), content).unwrap();
    file("isolinux.bin", &[1; 100]);
    file("ldlinux.c32", &[2; 100]);
    file("linuxx64.efi.stub", &stub());
    file("vmlinuz", &[b'k'; 700_001]);
    file("initramfs", &[b'i'; 300_001]);
    file("rescue", &[b'r'; 5_001]);
    let config = HttpConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        base_url: "http://10.9.0.1:8080".to_owned(),
        kernel: dir.join("vmlinuz"),
        initramfs: dir.join("initramfs"),
        rescue: dir.join("rescue"),
        loader_dir: dir.to_owned(),
        medium: MediumConfig { loader_dir: dir.to_owned(), arguments: "quiet".to_owned(), signed_uki },
    };
    let places = Places::new("boot", Limits { total: 16, per_address: 8 });
    let clients = Clients { timeouts: Timeouts::default(), places, operators: None };
    let http = Http::bind(config, Arc::new(Directory), clients).await.unwrap();
    let url = format!("http://{}/boot/media", http.local_addr());
    let shutdown = CancellationToken::new();
    tokio::spawn(http.run(shutdown.clone()));
    (url, shutdown.drop_guard())
}

fn client() -> reqwest::Client {
    // The workspace's reqwest has TLS without a provider chosen.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

#[tokio::test]
async fn a_medium_is_the_same_whole_and_in_ranges() {
    let dir = tempfile::tempdir().unwrap();
    let (url, _stop) = serving(dir.path()).await;
    let (client, medium) = (client(), format!("{url}/{NAME}"));
    let head = client.head(&medium).send().await.unwrap();
    assert_eq!(head.status(), 200);
    let length: usize = head.headers()[CONTENT_LENGTH].to_str().unwrap().parse().unwrap();
    let whole = client.get(&medium).send().await.unwrap().bytes().await.unwrap();
    assert_eq!(whole.len(), length);
    let holds = |wanted: &[u8]| whole.windows(wanted.len()).any(|part| part == wanted);
    assert!(holds(b"anneal.boot-nonce=SECRET") && holds(&[b'k'; 700_001]) && holds(&[b'i'; 300_001]));
    assert!(!holds(&[b'r'; 5_001]), "only a rescue has its archive");
    let mut joined = Vec::new();
    for first in (0..length).step_by(333_333) {
        let last = (first + 333_332).min(length - 1);
        let part = client.get(&medium).header(RANGE, format!("bytes={first}-{last}")).send().await.unwrap();
        assert_eq!(part.status(), 206);
        assert_eq!(part.headers()[CONTENT_RANGE], format!("bytes {first}-{last}/{length}"));
        joined.extend(part.bytes().await.unwrap());
    }
    assert!(joined == whole);
    let beyond = client.get(&medium).header(RANGE, format!("bytes={length}-")).send().await.unwrap();
    assert_eq!(beyond.status(), 416);
    let rescue = client.get(format!("{url}/rescue.iso")).send().await.unwrap().bytes().await.unwrap();
    assert!(rescue.windows(5_001).any(|part| part == [b'r'; 5_001]));

    std::fs::write(dir.path().join("vmlinuz"), [b'K'; 900_001]).unwrap();
    let newer = client.head(&medium).send().await.unwrap();
    assert_ne!(newer.headers()[ETAG], head.headers()[ETAG], "a kernel was replaced");
}

#[tokio::test]
async fn a_signed_program_is_served_unchanged_with_the_overlay_next_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let program: Vec<u8> = (0..500_001_u32).map(|at| (at % 251).to_le_bytes()[0]).collect();
    let file = dir.path().join("anneal.efi");
    std::fs::write(&file, &program).unwrap();
    let (url, _stop) = serving_program(dir.path(), Some(file.clone())).await;
    let (client, medium) = (client(), format!("{url}/{NAME}"));
    let answer = client.get(&medium).send().await.unwrap();
    let tag = answer.headers()[ETAG].clone();
    let whole = answer.bytes().await.unwrap();
    let holds = |wanted: &[u8]| whole.windows(wanted.len()).any(|part| part == wanted);
    assert!(holds(&program) && holds(br#"{"parameters":"anneal.boot-nonce=SECRET"}"#));
    assert!(!holds(&[b'k'; 1000]) && !holds(&[b'i'; 1000]), "kernel and initramfs are in the program alone");
    assert_eq!(client.get(format!("{url}/rescue.iso")).send().await.unwrap().status(), 500);
    std::fs::write(&file, [&program[..], b"more"].concat()).unwrap();
    let newer = client.head(&medium).send().await.unwrap();
    assert_ne!(newer.headers()[ETAG], tag, "the program was replaced");
}

#[tokio::test]
async fn what_is_not_there_is_not_explained() {
    let dir = tempfile::tempdir().unwrap();
    let (url, _stop) = serving(dir.path()).await;
    let client = client();
    for (name, status) in [("other.iso", 404), ("failed.iso", 503), (NAME, 200)] {
        assert_eq!(client.get(format!("{url}/{name}")).send().await.unwrap().status(), status, "{name}");
    }
    std::fs::remove_file(dir.path().join("isolinux.bin")).unwrap();
    let answer = client.get(format!("{url}/{NAME}")).send().await.unwrap();
    assert_eq!(answer.status(), 500);
    assert!(
        !answer.text().await.unwrap().contains("isolinux"),
        "the controller's files are no client's business"
    );
}
