//! FAT file systems that mkfs.vfat and mtools made, and the loaders on them.

use boot_entries::fat::Fat;
use boot_entries::loader::{Architecture, Loader, find};
use proptest::prelude::*;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// A file system in a file of so many KiB, with these files.
pub fn made(kib: u64, bits: &str, files: &[(&str, &[u8])]) -> Vec<u8> {
    let place = tempfile::NamedTempFile::new().expect("a file");
    place.as_file().set_len(kib << 10).expect("a size");
    let image = place.path().to_str().expect("a path");
    run(Command::new("mkfs.vfat").args(["-F", bits, "-n", "ESP", image]), b"");
    for (path, content) in files {
        let parents: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
        for at in parents {
            let name = format!("::{}", &path[..at]);
            run(Command::new("mmd").args(["-D", "s", "-i", image, &name]), b"");
        }
        run(Command::new("mcopy").args(["-i", image, "-", &format!("::{path}")]), content);
    }
    std::fs::read(place.path()).expect("the image")
}

fn run(command: &mut Command, input: &[u8]) {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("mkfs.vfat and mtools are installed (cargo xtask deps)");
    child.stdin.take().expect("a pipe").write_all(input).expect("its input");
    let done = child.wait_with_output().expect("its end");
    let skipped = command.get_program() == "mmd";
    assert!(skipped || done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

pub fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// As shim's package has it.
pub fn list(label: &str) -> Vec<u8> {
    [vec![0xff, 0xfe], wide(&format!("shimx64.efi,{label},,This is the boot entry for {label}\n"))].concat()
}

fn loader(image: &[u8]) -> Result<Loader, String> {
    let fat = Fat::open(image, image.len() as u64).map_err(|error| error.to_string())?;
    find(&fat, Architecture::X64).map_err(|error| error.to_string())
}

fn expected(path: &str, label: &str, options: &str) -> Loader {
    Loader { path: path.to_owned(), label: label.to_owned(), options: options.to_owned() }
}

#[test]
fn the_list_of_the_vendor_is_found_on_fat_of_each_width() {
    let csv = list("debian");
    for (kib, bits) in [(2 << 10, "12"), (16 << 10, "16"), (64 << 10, "32")] {
        let files: [(&str, &[u8]); 4] = [
            ("EFI/BOOT/BOOTX64.EFI", b"MZ"),
            ("EFI/BOOT/fbx64.efi", b"MZ"),
            ("EFI/debian/BOOTX64.CSV", &csv),
            ("EFI/debian/shimx64.efi", b"MZ"),
        ];
        let found = loader(&made(kib, bits, &files));
        assert_eq!(found, Ok(expected(r"\EFI\debian\shimx64.efi", "debian", "")), "FAT{bits}");
    }
}

#[test]
fn without_a_list_it_is_the_one_for_removable_media() {
    let image = made(2048, "12", &[("EFI/BOOT/BOOTX64.EFI", b"MZ"), ("EFI/other/x.efi", b"MZ")]);
    assert_eq!(loader(&image), Ok(expected(r"\EFI\BOOT\BOOTX64.EFI", "anneal", "")));
    // Small letters, as some tools write them.
    let image = made(2048, "12", &[("efi/boot/bootx64.efi", b"MZ")]);
    assert_eq!(loader(&image), Ok(expected(r"\efi\boot\bootx64.efi", "anneal", "")));
    let image = made(2048, "12", &[("EFI/BOOT/BOOTAA64.EFI", b"MZ")]);
    let fat = Fat::open(image.as_slice(), image.len() as u64).expect("a file system");
    let found = find(&fat, Architecture::Aa64).expect("a loader");
    assert_eq!(found.path, r"\EFI\BOOT\BOOTAA64.EFI");
    assert!(loader(&image).expect_err("of another machine").contains("EFI/BOOT/BOOTX64.EFI"));
}

#[test]
fn lists_are_read_as_they_are_written() {
    for (csv, label, options) in [
        (wide("shimx64.efi,Fedora,,comment"), "Fedora", ""),
        (list("debian"), "debian", ""),
        (wide("\r\nshimx64.efi , Name of it , a b , c\r\nother.efi,Other"), "Name of it", "a b"),
        (b"shimx64.efi,by hand".to_vec(), "by hand", ""),
        (b"\xef\xbb\xbfshimx64.efi".to_vec(), "anneal", ""),
    ] {
        let files: [(&str, &[u8]); 2] = [("EFI/os/BOOTX64.CSV", &csv), ("EFI/os/shimx64.efi", b"MZ")];
        let found = loader(&made(2048, "12", &files));
        assert_eq!(found, Ok(expected(r"\EFI\os\shimx64.efi", label, options)));
    }
    let csv = wide("sub\\grub.efi,deep");
    let files: [(&str, &[u8]); 2] = [("EFI/os/boot.csv", &csv), ("EFI/os/sub/grub.efi", b"MZ")];
    assert_eq!(loader(&made(2048, "12", &files)), Ok(expected(r"\EFI\os\sub\grub.efi", "deep", "")));
}

#[test]
fn what_a_list_does_not_name_is_not_guessed() {
    let long = format!("a.efi,{}", "l".repeat(81));
    for (csv, problem) in [
        (&b""[..], "EFI/os/BOOTX64.CSV: it is empty"),
        (b",label", "names no file next to it"),
        (br"..\BOOT\a.efi,x", "names no file next to it"),
        (b"/etc/a.efi,x", "names no file next to it"),
        (b"a.efi,x\x1b[2J", "control characters"),
        (long.as_bytes(), "more than 80 characters"),
        (b"missing.efi,x", r"names the loader \EFI\os\missing.efi, which is not there"),
        (br"a.efi\b.efi,x", "which is not there"),
        (b"sub,x", "which is not there"),
        (b"empty.efi,x", "which is not there"),
    ] {
        let files: [(&str, &[u8]); 5] = [
            ("EFI/BOOT/BOOTX64.EFI", b"MZ"),
            ("EFI/os/BOOTX64.CSV", csv),
            ("EFI/os/a.efi", b"MZ"),
            ("EFI/os/sub/x", b""),
            ("EFI/os/empty.efi", b""),
        ];
        let found = loader(&made(2048, "12", &files)).expect_err(problem);
        assert!(found.contains(problem), "{found}");
    }
    let large = vec![b'x'; 65 << 10];
    let found = loader(&made(2048, "12", &[("EFI/os/BOOTX64.CSV", &large)])).expect_err("large");
    assert!(found.contains("64 KiB"), "{found}");
}

#[test]
fn an_esp_without_a_loader_is_named_as_such() {
    for files in [&[][..], &[("x/y", &b"MZ"[..])], &[("EFI/BOOT/x", b"MZ")], &[("EFI/BOOT/BOOTX64.EFI", b"")]]
    {
        let found = loader(&made(2048, "12", files)).expect_err("nothing");
        assert_eq!(found, "it has neither EFI/*/BOOTX64.CSV nor EFI/BOOT/BOOTX64.EFI");
    }
}

#[test]
fn what_is_no_file_system_is_said() {
    let good = made(2048, "12", &[]);
    for (at, bytes, problem) in [
        (510, &[0, 0][..], "no boot sector"),
        (11, &[0, 3], "sectors or clusters"),
        (13, &[3], "sectors or clusters"),
        (14, &[0, 0], "no file allocation table"),
        (16, &[0], "no file allocation table"),
        (19, &[255, 255], "its size"),
        (19, &[1, 0], "larger than it says"),
    ] {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        let found = loader(&bad).expect_err(problem);
        assert!(found.contains(problem), "{at}: {found}");
    }
    assert!(loader(&[]).is_err());
    assert!(loader(&good[..1024]).is_err());
}

#[test]
fn a_chain_that_goes_in_a_circle_ends() {
    let csv = list("debian");
    let mut image = made(64 << 10, "32", &[("EFI/debian/BOOTX64.CSV", &csv)]);
    let reserved = usize::from(u16::from_le_bytes([image[14], image[15]]));
    // The root directory's cluster is followed by itself, and full.
    let fat = reserved * 512;
    image[fat + 8..fat + 12].copy_from_slice(&2u32.to_le_bytes());
    let found = loader(&image).expect_err("a circle");
    assert!(found.contains("go in a circle"), "{found}");
}

/// With long and short names in several directories.
static SAMPLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let csv = list("debian");
    let files: [(&str, &[u8]); 4] = [
        ("EFI/BOOT/BOOTX64.EFI", b"MZ"),
        ("EFI/a directory with a long name/x", b""),
        ("EFI/debian/BOOTX64.CSV", &csv),
        ("EFI/debian/shimx64.efi", b"MZ"),
    ];
    made(256, "12", &files)
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_break_it(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let mut image = SAMPLE.clone();
        // The boot sector, the tables and the first directories.
        for (at, byte) in changes {
            image[at.index(24 << 10)] = byte;
        }
        let _ = loader(&image);
    }
}
