//! Boot HTTP over a real socket on loopback.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use boot::firmware::FirmwareDir;
use boot::http::{Http, HttpConfig};
use boot::medium::{MediumConfig, RamdiskFiles};
use boot::{BootAnswer, BootDirectory, CancellationToken, HelloAnswer, Mac};
use http_server::{Clients, Limits, Places, Timeouts};

const MAC: &str = "52:54:00:ab:cd:01";

#[derive(Default)]
struct Directory(Mutex<Vec<(Option<String>, String)>>);

#[async_trait]
impl BootDirectory for Directory {
    async fn boot_for(&self, mac: Mac, from: IpAddr) -> BootAnswer {
        assert_eq!(from, IpAddr::from([127, 0, 0, 1]), "where the request came from");
        match mac.to_string().as_str() {
            MAC => {
                BootAnswer::Ramdisk { kernel_args: "quiet".to_owned(), rescue: false, firmware: Vec::new() }
            }
            "52:54:00:ab:cd:02" => BootAnswer::LocalDisk,
            "52:54:00:ab:cd:03" => BootAnswer::Ramdisk {
                kernel_args: "a\nshell".to_owned(),
                rescue: false,
                firmware: Vec::new(),
            },
            _ => BootAnswer::Unknown,
        }
    }

    async fn hello(&self, nonce: &str, from: Option<IpAddr>) -> HelloAnswer {
        assert_eq!(from, Some(IpAddr::from([127, 0, 0, 1])), "where the request came from");
        match nonce {
            "right" => HelloAnswer::Heard,
            "second" => HelloAnswer::TooMany,
            "full" => HelloAnswer::Failed,
            _ => HelloAnswer::NotAwaited,
        }
    }

    async fn first_byte(&self, mac: Option<&str>, file: &str) {
        self.0.lock().unwrap().push((mac.map(str::to_owned), file.to_owned()));
    }
}

struct Running {
    url: String,
    kernel: Vec<u8>,
    directory: Arc<Directory>,
    dir: tempfile::TempDir,
    _shutdown: tokio_util::sync::DropGuard,
}

async fn running() -> Running {
    let dir = tempfile::tempdir().unwrap();
    // Longer than one chunk of the stream.
    let kernel: Vec<u8> = (0..600_001u32).map(|n| (n % 251).to_le_bytes()[0]).collect();
    std::fs::write(dir.path().join("vmlinuz"), &kernel).unwrap();
    std::fs::write(dir.path().join("snponly.efi"), b"MZ").unwrap();
    let config = HttpConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        base_url: "http://10.9.0.1:8080".to_owned(),
        ramdisk: RamdiskFiles {
            kernel: dir.path().join("vmlinuz"),
            initramfs: dir.path().join("missing"),
            rescue: dir.path().join("login"),
            firmware: Some(FirmwareDir::new(dir.path().join("firmware"))),
        },
        loader_dir: dir.path().to_owned(),
        medium: MediumConfig {
            loader_dir: dir.path().to_owned(),
            arguments: String::new(),
            signed_uki: None,
        },
    };
    let directory = Arc::new(Directory::default());
    let http = Http::bind(config, directory.clone(), clients()).await.unwrap();
    let url = format!("http://{}/boot", http.local_addr());
    let shutdown = CancellationToken::new();
    tokio::spawn(http.run(shutdown.clone()));
    Running { url, kernel, directory, dir, _shutdown: shutdown.drop_guard() }
}

fn clients() -> Clients {
    let places = Places::new("boot", Limits { total: 16, per_address: 8 });
    Clients { timeouts: Timeouts::default(), places, operators: None }
}

fn client() -> reqwest::Client {
    // The workspace's reqwest has TLS without a provider chosen.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

#[tokio::test]
async fn scripts_by_mac() {
    let (server, client) = (running().await, client());
    let get = async |query: &str| {
        let response = client.get(format!("{}/ipxe{query}", server.url)).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    // iPXE may write the MAC with hyphens.
    for mac in [MAC, "52-54-00-AB-CD-01"] {
        let (status, script) = get(&format!("?mac={mac}")).await;
        assert_eq!(status, 200);
        assert!(
            script.starts_with("#!ipxe\n") && script.contains("quiet BOOTIF=01-52-54-00-ab-cd-01"),
            "{script}"
        );
    }
    assert!(get("?mac=52:54:00:ab:cd:02").await.1.contains("boots from its disk"));
    assert!(get("?mac=52:54:00:ab:cd:ff").await.1.contains("no node has the MAC"));
    for (query, status, word) in [
        ("", 400, "mac"),
        ("?mac=nonsense", 400, "'nonsense' is not a MAC address"),
        ("?mac=52:54:00:ab:cd:03", 500, "control characters"),
    ] {
        let (got, text) = get(query).await;
        assert!(got == status && text.contains(word) && !text.contains("#!ipxe"), "{query}: {got} {text}");
    }
    let served = server.directory.0.lock().unwrap().clone();
    assert_eq!(served.len(), 4);
    assert_eq!(served[0], (Some(MAC.to_owned()), "ipxe".to_owned()));
}

/// cloud-init sends GET without data, POST with data; a HEAD would use the nonce up without saying so.
#[tokio::test]
async fn hellos() {
    let (server, client) = (running().await, client());
    let root = server.url.strip_suffix("/boot").unwrap();
    for (nonce, status) in [("right", 200), ("second", 429), ("full", 503), ("wrong", 404), ("ri%67ht", 200)]
    {
        let url = format!("{root}/hello/{nonce}");
        for request in [client.get(&url), client.post(&url).body("hostname=h"), client.post(&url)] {
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status().as_u16(), status, "{nonce}");
            assert_eq!(answer.headers()["cache-control"], "no-store");
            assert!(!answer.text().await.unwrap().contains(nonce));
        }
        assert_eq!(client.head(&url).send().await.unwrap().status().as_u16(), 405);
    }
}

#[tokio::test]
async fn files_whole_in_part_and_not_again() {
    let (server, client) = (running().await, client());
    let url = format!("{}/vmlinuz?mac={MAC}", server.url);

    let head = client.head(&url).send().await.unwrap();
    assert_eq!(head.headers()["content-length"], "600001");
    assert!(server.directory.0.lock().unwrap().is_empty(), "HEAD serves no byte");

    let whole = client.get(&url).send().await.unwrap();
    let etag = whole.headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(whole.headers()["content-length"], "600001");
    assert!(whole.bytes().await.unwrap() == server.kernel);
    assert_eq!(*server.directory.0.lock().unwrap(), [(Some(MAC.to_owned()), "vmlinuz".to_owned())]);

    let part = client.get(&url).header("range", "bytes=300000-599999").header("if-range", &etag);
    let part = part.send().await.unwrap();
    assert_eq!(part.status(), 206);
    assert_eq!(part.headers()["content-range"], "bytes 300000-599999/600001");
    assert!(part.bytes().await.unwrap() == server.kernel[300_000..600_000]);

    let beyond = client.get(&url).header("range", "bytes=600001-").send().await.unwrap();
    assert_eq!(
        (beyond.status().as_u16(), beyond.headers()["content-range"].to_str().unwrap()),
        (416, "bytes */600001")
    );

    let same = client.get(&url).header("if-none-match", &etag).send().await.unwrap();
    assert_eq!(same.status(), 304);
    std::fs::write(server.dir.path().join("vmlinuz"), b"new").unwrap();
    let changed = client.get(&url).header("if-none-match", &etag).send().await.unwrap();
    assert_eq!((changed.status().as_u16(), changed.text().await.unwrap().as_str()), (200, "new"));
    // A range of the version that is gone gives the whole of the new one.
    let changed =
        client.get(&url).header("range", "bytes=1-").header("if-range", &etag).send().await.unwrap();
    assert_eq!((changed.status().as_u16(), changed.text().await.unwrap().as_str()), (200, "new"));
}

#[tokio::test]
async fn only_the_files_of_the_list() {
    let (server, client) = (running().await, client());
    let loader = client.get(format!("{}/snponly.efi", server.url)).send().await.unwrap();
    assert_eq!(loader.text().await.unwrap(), "MZ");
    std::fs::write(server.dir.path().join("login"), b"cpio").unwrap();
    let rescue = client.get(format!("{}/rescue", server.url)).send().await.unwrap();
    assert_eq!(rescue.text().await.unwrap(), "cpio");
    let firmware = server.dir.path().join("firmware");
    std::fs::create_dir(&firmware).unwrap();
    for file in ["bnx2x.cpio.zst", "index.json"] {
        std::fs::write(firmware.join(file), b"blob").unwrap();
    }
    let blob = client.get(format!("{}/firmware/bnx2x.cpio.zst?mac={MAC}", server.url)).send().await.unwrap();
    assert_eq!(blob.text().await.unwrap(), "blob");
    let served = server.directory.0.lock().unwrap().last().cloned();
    assert_eq!(served, Some((Some(MAC.to_owned()), "firmware".to_owned())));
    for name in ["index.json", "qed.cpio.zst", "..%2fvmlinuz", "..%2fx.cpio.zst"] {
        let response = client.get(format!("{}/firmware/{name}", server.url)).send().await.unwrap();
        assert_eq!(response.status(), 404, "{name}");
    }
    for name in
        ["initramfs", "login", "undionly.kpxe", "passwd", "..%2f..%2f..%2fetc%2fpasswd", "missing", "%00"]
    {
        let response = client.get(format!("{}/{name}", server.url)).send().await.unwrap();
        assert_eq!(response.status(), 404, "{name}");
    }
    let post = client.post(format!("{}/vmlinuz", server.url)).send().await.unwrap();
    assert_eq!(post.status(), 405);
}

#[tokio::test]
async fn shutdown_does_not_wait_for_a_slow_client() {
    let server = running().await;
    let address = server.url.trim_start_matches("http://").trim_end_matches("/boot").to_owned();
    let idle = tokio::net::TcpStream::connect(&address).await.unwrap();
    drop(server);
    let ended = async {
        while tokio::net::TcpStream::connect(&address).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), ended).await.unwrap();
    drop(idle);
}
