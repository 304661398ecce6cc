//! The file systems are made as an Ironic makes them, by the same tools. `tests/fuzz` changes such at random.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

const PUBLISHER: &str = "6f2f8ddd-9f3a-4d5e-8a5b-7d0f6d3f2a11";

fn run(command: &mut Command) {
    let out = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// A drive of so many KiB with this label and these files. `options` are mkfs.vfat's.
fn fat(kib: u64, label: &str, options: &[&str], files: &[(&str, &[u8])]) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let image = dir.path().join("image");
    File::create(&image).and_then(|file| file.set_len(kib << 10)).expect("the image");
    run(Command::new("/sbin/mkfs").args(["-t", "vfat", "-n", label]).args(options).arg(&image));
    for (name, content) in files {
        let file = dir.path().join(name);
        fs::write(&file, content).expect("a file");
        run(Command::new("mcopy").arg(&file).arg("-i").arg(&image).arg("::"));
    }
    fs::read(image).expect("the image")
}

/// A CD as an Ironic makes it, with these files.
fn cd(label: &str, files: &[(&str, &[u8])]) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let (root, image) = (dir.path().join("root"), dir.path().join("image"));
    for (name, content) in files {
        let file = root.join(name);
        fs::create_dir_all(file.parent().expect("a parent")).expect("directories");
        fs::write(file, content).expect("a file");
    }
    let mkisofs = ["-as", "mkisofs", "-r", "-V", label, "-J", "-l", "-publisher", PUBLISHER, "-o"];
    run(Command::new("xorriso").args(mkisofs).args([&image, &root]));
    fs::read(image).expect("the image")
}

fn wanted(line: &str) -> Option<Wanted> {
    Wanted::of(line.split(' ').filter_map(|word| word.split_once('=')))
}

#[test]
fn only_a_boot_by_virtual_media_has_them() {
    assert_eq!(wanted("quiet boot_method=vmedia"), Some(Wanted { publisher: None }));
    let publisher = Some(PUBLISHER.to_owned());
    assert_eq!(wanted(&format!("ir_pub_id={PUBLISHER} boot_method=vmedia")), Some(Wanted { publisher }));
    assert_eq!(wanted("ir_pub_id= boot_method=vmedia"), Some(Wanted { publisher: None }));
    for other in ["", "boot_method=", "boot_method=vmedia boot_method=ipxe", "BOOT_METHOD=vmedia"] {
        assert_eq!(wanted(other), None, "{other}");
    }
}

#[test]
fn the_parameters_of_a_drive_of_ironic() {
    let text = b"ipa-api-url=http://192.0.2.1:6385\nipa-agent-token=SECRET\nboot_method=vmedia";
    let expected = "ipa-api-url=http://192.0.2.1:6385 ipa-agent-token=SECRET boot_method=vmedia";
    for kib in [100, 1440] {
        let image = fat(kib, "ir-vfd-dev", &[], &[("parameters.txt", text)]);
        assert_eq!(parameters_of(&image[..]), Ok(Some(expected.to_owned())), "{kib}");
    }
    // Behind others, in many clusters, and one of 16 bits.
    let long = format!("key={}", "x".repeat(40_000));
    let files: [(&str, &[u8]); 3] =
        [("A", b"a"), ("another long name.text", b"b"), ("PARAMETERS.TXT", long.as_bytes())];
    for (kib, options) in [(1440, &[][..]), (20 << 10, &["-F", "16"]), (4 << 10, &["-s", "4"])] {
        assert_eq!(parameters_of(&fat(kib, "IR-VFD-DEV", options, &files)[..]), Ok(Some(long.clone())));
    }
    let disc = cd("IR-VFD-DEV", &[("parameters.txt", text)]);
    assert_eq!(parameters_of(&disc[..]), Ok(Some(expected.to_owned())));
}

#[test]
fn a_drive_that_is_not_as_it_should_be_is_an_error_that_shows_nothing_of_it() {
    let of = |label: &str, files: &[(&str, &[u8])]| parameters_of(&fat(1440, label, &[], files)[..]);
    assert_eq!(of("OTHER", &[("parameters.txt", b"a=b")]), Ok(None));
    assert_eq!(parameters_of(&[0; 100_000][..]), Ok(None));
    assert_eq!(parameters_of(&[][..]), Ok(None));
    assert!(of("ir-vfd-dev", &[("other.txt", b"a=b")]).unwrap_err().contains("has no parameters.txt"));
    let most = usize::try_from(MOST).expect("a size");
    assert!(of("ir-vfd-dev", &[("parameters.txt", &vec![b'x'; most])]).is_ok());
    let long = of("ir-vfd-dev", &[("parameters.txt", &vec![b'x'; most + 1])]).unwrap_err();
    assert!(long.contains("65537 bytes of at most 65536"), "{long}");
    let binary = of("ir-vfd-dev", &[("parameters.txt", b"SECRET\xff")]).unwrap_err();
    assert!(binary.contains("is no text") && !binary.contains("SECRET"), "{binary}");
    let mut cut = fat(20 << 10, "ir-vfd-dev", &["-F", "16"], &[("parameters.txt", &vec![b'x'; 40_000])]);
    cut.truncate(60_000);
    assert!(parameters_of(&cut[..]).unwrap_err().contains("cannot be read"));
}

#[test]
fn the_network_is_that_of_the_cd_that_was_booted() {
    let disc = cd("config-2", &[("openstack/latest/network_data.json", b"{}"), ("vmlinuz", b"x")]);
    let of = |line: &str, bytes: &[u8]| wanted(line).expect("virtual media").network_of(bytes);
    assert_eq!(of("boot_method=vmedia", &disc), Ok(Some(b"{}".to_vec())));
    assert_eq!(of(&format!("boot_method=vmedia ir_pub_id={PUBLISHER}"), &disc), Ok(Some(b"{}".to_vec())));
    let foreign = "boot_method=vmedia ir_pub_id=00000000-0000-0000-0000-000000000000";
    assert_eq!(of(foreign, &disc), Ok(None));
    assert_eq!(of("boot_method=vmedia", &cd("VMEDIA_BOOT_ISO", &[("vmlinuz", b"x")])), Ok(None));
    let other = cd("OTHER", &[("openstack/latest/network_data.json", b"{}")]);
    assert_eq!(of("boot_method=vmedia", &other), Ok(None));
    assert_eq!(of("boot_method=vmedia", &[0; 100_000]), Ok(None));
    let directory = cd("config-2", &[("openstack/latest/network_data.json/x", b"x")]);
    assert_eq!(of("boot_method=vmedia", &directory), Ok(None));
}

/// A machine with these drives on USB.
struct Machine(tempfile::TempDir);

impl Machine {
    fn with(drives: &[(&str, &[u8])]) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        for dir in ["block", "dev"] {
            fs::create_dir(root.path().join(dir)).expect("a directory");
        }
        for (name, bytes) in drives {
            let device = root.path().join("devices/usb1").join(name);
            fs::create_dir_all(&device).expect("a device");
            fs::write(device.join("size"), format!("{}\n", bytes.len() / 512)).expect("its size");
            symlink(&device, root.path().join("block").join(name)).expect("a link");
            fs::write(root.path().join("dev").join(name), bytes).expect("its content");
        }
        Self(root)
    }

    fn read(&self, line: &str) -> Result<VirtualMedia, String> {
        wanted(line).expect("virtual media").read_below(self.0.path(), &self.0.path().join("dev"))
    }
}

#[test]
fn two_drives_with_the_label_are_refused_by_their_names() {
    let drive = fat(100, "ir-vfd-dev", &[], &[("parameters.txt", b"a=b")]);
    let disc = cd("config-2", &[("openstack/latest/network_data.json", b"{}")]);
    let machine = Machine::with(&[("sda", &[7; 4096]), ("sdb", &drive), ("sr0", &disc)]);
    let media = machine.read("boot_method=vmedia").unwrap_or_else(|why| panic!("{why}"));
    assert_eq!((&*media.parameters, media.network_data.as_deref()), ("a=b", Some(&b"{}"[..])));

    let refused =
        |drives: &[(&str, &[u8])]| Machine::with(drives).read("boot_method=vmedia").err().expect("refused");
    let why = refused(&[("sdb", &drive), ("sdc", &drive)]);
    assert!(why.contains("sdb and sdc both have ir-vfd-dev"), "{why}");
    let why = refused(&[("sr0", &disc), ("sr1", &disc)]);
    assert!(why.contains("sr0 and sr1 both have openstack/latest/network_data.json"), "{why}");
    let nothing = Machine::with(&[]).read("boot_method=vmedia").unwrap_or_else(|why| panic!("{why}"));
    assert!(nothing == VirtualMedia::default());
}
