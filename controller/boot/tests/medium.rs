//! Boot media over a real socket on loopback: whole, by HEAD and in ranges, as BMCs read them.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use boot::firmware::FirmwareDir;
use boot::http::{Http, HttpConfig};
use boot::medium::{Content, MediumConfig, RamdiskFiles, SHIM, SYSTEMD_BOOT};
use boot::{BootAnswer, BootDirectory, CancellationToken, Mac, MediumAnswer, Overlay};
use http_server::{Clients, Limits, Places, Timeouts};
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, RANGE};

const NAME: &str = "anneal-node-digest.iso";
const PROGRAM: &str = "anneal-node-digest.efi";

struct Directory;

#[async_trait]
impl BootDirectory for Directory {
    async fn boot_for(&self, _: Mac, _: IpAddr) -> BootAnswer {
        BootAnswer::Unknown
    }

    async fn medium(&self, file_name: &str, from: Option<IpAddr>) -> MediumAnswer {
        assert_eq!(from, Some(IpAddr::from([127, 0, 0, 1])), "where the request came from");
        match file_name {
            NAME | "rescue.iso" | "firmware.iso" | "shim.iso" | "shim-rescue.iso" | PROGRAM => {
                MediumAnswer::Medium {
                    overlay: Overlay::new("anneal.boot-nonce=SECRET", None).unwrap(),
                    content: Content {
                        rescue: file_name.ends_with("rescue.iso"),
                        firmware: match file_name {
                            "firmware.iso" => vec!["bnx2x.cpio.zst".to_owned(), "qed.cpio.zst".to_owned()],
                            _ => Vec::new(),
                        },
                        through_shim: file_name.starts_with("shim"),
                    },
                    program_alone: file_name == PROGRAM,
                }
            }
            "theirs.iso" => MediumAnswer::Medium {
                overlay: Overlay::for_ironic_python_agent("ipa-api-url=https://192.0.2.1/SECRET ipa-debug=1")
                    .unwrap(),
                content: Content::default(),
                program_alone: false,
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
    file(SHIM, &[b's'; 100_001]);
    file(SYSTEMD_BOOT, &[b'b'; 200_001]);
    file("vmlinuz", &[b'k'; 700_001]);
    file("initramfs", &[b'i'; 300_001]);
    file("rescue", &[b'r'; 5_001]);
    file("bnx2x.cpio.zst", &[b'b'; 6_002]);
    file("qed.cpio.zst", &[b'q'; 7_001]);
    let config = HttpConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        base_url: "http://10.9.0.1:8080".to_owned(),
        ramdisk: RamdiskFiles {
            kernel: dir.join("vmlinuz"),
            initramfs: dir.join("initramfs"),
            rescue: dir.join("rescue"),
            firmware: Some(FirmwareDir::new(dir)),
        },
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
    let firmware = client.get(format!("{url}/firmware.iso")).send().await.unwrap().bytes().await.unwrap();
    let together = [&[b'i'; 300_001][..], &[b'b'; 6_002], &[b'q'; 7_001]].concat();
    assert!(firmware.windows(together.len()).any(|part| part == together), "one behind the other");
    assert!(!holds(&[b'b'; 1000]), "only a node that needs it has it");

    // The program alone, which is one piece of the whole.
    let program = client.get(format!("{url}/{PROGRAM}")).send().await.unwrap().bytes().await.unwrap();
    let place = whole.windows(program.len()).position(|part| part == program).expect("not in the medium");
    assert!(program.starts_with(&stub()[..0x40]) && program.len() < length && place > 0);
    let end = client.get(format!("{url}/{PROGRAM}")).header(RANGE, "bytes=-16384").send().await.unwrap();
    assert_eq!(end.bytes().await.unwrap(), program.slice(program.len() - 16384..));

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
    for refused in ["rescue.iso", "firmware.iso", PROGRAM] {
        let status = client.get(format!("{url}/{refused}")).send().await.unwrap().status();
        assert_eq!(status, 500, "{refused}: it is not in the program");
    }
    std::fs::write(&file, [&program[..], b"more"].concat()).unwrap();
    let newer = client.head(&medium).send().await.unwrap();
    assert_ne!(newer.headers()[ETAG], tag, "the program was replaced");
}

/// Each of the four kinds of unsigned media has a template of its own.
#[tokio::test]
async fn a_node_with_secure_boot_gets_signed_loaders_and_the_same_ramdisk() {
    let dir = tempfile::tempdir().unwrap();
    let (url, _stop) = serving(dir.path()).await;
    let client = client();
    let get =
        async |name: &str| client.get(format!("{url}/{name}")).send().await.unwrap().bytes().await.unwrap();
    let loaders = [&[b's'; 100_001][..], &[b'b'; 200_001]];
    let ramdisk = [&[b'k'; 700_001][..], &[b'i'; 300_001], b"anneal.boot-nonce=SECRET"];
    for (name, through_shim, rescue) in [
        (NAME, false, false),
        ("shim.iso", true, false),
        ("rescue.iso", false, true),
        ("shim-rescue.iso", true, true),
    ] {
        for _ in 0..2 {
            let whole = get(name).await;
            let holds = |wanted: &[u8]| whole.windows(wanted.len()).any(|part| part == wanted);
            assert!(ramdisk.iter().all(|part| holds(part)), "{name}");
            assert!(loaders.iter().all(|part| holds(part) == through_shim), "{name}");
            assert_eq!(holds(&[b'r'; 5_001]), rescue, "{name}");
            assert_eq!(holds(b"\noptions quiet\n"), through_shim, "{name}");
        }
    }
    std::fs::remove_file(dir.path().join(SYSTEMD_BOOT)).unwrap();
    let status = async |name: &str| client.get(format!("{url}/{name}")).send().await.unwrap().status();
    assert_eq!(status("shim.iso").await, 500);
    assert_eq!(status(NAME).await, 200, "this one has no systemd-boot");
}

#[tokio::test]
async fn the_medium_of_ironic_python_agent_says_so_on_its_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let (url, _stop) = serving(dir.path()).await;
    let client = client();
    let whole =
        async |name: &str| client.get(format!("{url}/{name}")).send().await.unwrap().bytes().await.unwrap();
    let (theirs, ours) = (whole("theirs.iso").await, whole(NAME).await);
    let holds = |all: &[u8], wanted: &[u8]| all.windows(wanted.len()).any(|part| part == wanted);
    for wanted in [&b"quiet boot_method=vmedia"[..], b"IR-VFD-DEV", b"\nipa-debug=1\n", &[b'i'; 300_001]] {
        assert!(holds(&theirs, wanted), "{}", String::from_utf8_lossy(&wanted[..10]));
    }
    assert!(!holds(&theirs, b"etc/anneal") && !holds(&ours, b"vmedia"));
    std::fs::write(dir.path().join("initramfs"), [b'I'; 400_001]).unwrap();
    assert!(holds(&whole("theirs.iso").await, &[b'I'; 400_001]), "it was replaced");
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
