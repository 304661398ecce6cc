//! The medium, read by others: xorriso (ISO 9660), mtools (FAT), GNU cpio's format by hand.

use boot_media::signed::{HEAD, arguments, obeyed, program};
use boot_media::{
    Loaders, OVERLAY, Overlay, Piece, Reader, ShimSizes, Sizes, Source, Template, TemplateError,
};
use proptest::prelude::*;
use std::path::Path;
use std::process::Command;

/// Sizes of the real loaders in Debian 12.
const ISOLINUX: usize = 38_912;
const LDLINUX: usize = 119_524;
const STUB: usize = 83_297;
const SECTIONS_END: u32 = 0x11400;
const ARGUMENTS: &str = "anneal.ramdisk quiet console=ttyS0";

fn filled(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at % 251).to_le_bytes()[0] ^ seed).collect()
}

/// What the header of systemd's stub has: eight sections, room for more.
fn stub() -> Vec<u8> {
    let mut stub = filled(STUB, 3);
    stub[..0x400].fill(0);
    let mut put = |at: usize, bytes: &[u8]| stub[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x3c, &0x80_u32.to_le_bytes());
    put(0x80, b"PE\0\0");
    put(0x86, &8_u16.to_le_bytes());
    put(0x94, &240_u16.to_le_bytes());
    put(0x98, &0x20b_u16.to_le_bytes());
    // The only section that lies in the file ends before its symbols.
    put(0x98 + 240 + 16, &(SECTIONS_END - 0x400).to_le_bytes());
    put(0x98 + 240 + 20, &0x400_u32.to_le_bytes());
    put(0x98 + 56, &0x19300_u32.to_le_bytes());
    put(0x98 + 60, &0x400_u32.to_le_bytes());
    stub
}

fn loaders() -> Loaders {
    Loaders { isolinux: filled(ISOLINUX, 1), ldlinux: filled(LDLINUX, 2), stub: stub() }
}

struct Whole {
    kernel: Vec<u8>,
    archives: Vec<Vec<u8>>,
    program: Vec<u8>,
    shim: Vec<u8>,
    systemd_boot: Vec<u8>,
    template: Template,
    overlay: Overlay,
}

fn whole(kernel: usize, archives: &[usize]) -> Whole {
    let sizes = Sizes { kernel: kernel as u64, archives: archives.iter().map(|size| *size as u64).collect() };
    Whole {
        kernel: filled(kernel, 7),
        archives: archives.iter().zip(40..).map(|(size, seed)| filled(*size, seed)).collect(),
        program: Vec::new(),
        shim: Vec::new(),
        systemd_boot: Vec::new(),
        template: Template::new(&loaders(), &sizes, ARGUMENTS).unwrap(),
        overlay: Overlay::new("anneal.boot-nonce=SECRET ipa-api-url=https://192.0.2.1:6385", None).unwrap(),
    }
}

impl Whole {
    fn bytes(&self, first: u64, count: u64) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in self.template.pieces(&self.overlay, first, count) {
            match piece {
                Piece::Bytes(bytes) => out.extend(bytes),
                Piece::Zeros(count) => out.resize(out.len() + usize::try_from(count).unwrap(), 0),
                Piece::Source { source, offset, count } => {
                    let from = match source {
                        Source::Kernel => &self.kernel,
                        Source::Archive(index) => &self.archives[index],
                        Source::Program => &self.program,
                        Source::Shim => &self.shim,
                        Source::SystemdBoot => &self.systemd_boot,
                    };
                    let (at, count) = (usize::try_from(offset).unwrap(), usize::try_from(count).unwrap());
                    out.extend(&from[at..at + count]);
                }
            }
        }
        out
    }

    fn all(&self) -> Vec<u8> {
        self.bytes(0, u64::MAX)
    }
}

fn run(command: &mut Command) -> Vec<u8> {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

fn in_iso(image: &Path, name: &str) -> Vec<u8> {
    let to = image.with_file_name(format!("{}.out", name.replace('/', "-")));
    let (image, to) = (image.to_str().unwrap(), to.to_str().unwrap());
    run(Command::new("xorriso").args([
        "-osirrox",
        "on",
        "-indev",
        image,
        "-extract",
        &format!("/{name}"),
        to,
    ]));
    std::fs::read(to).unwrap()
}

/// What UEFI boots and what BIOS boots are the same bytes.
#[test]
fn both_file_systems_show_the_same_kernel_and_initramfs() {
    let whole = whole(1_000_003, &[3_000_001, 77]);
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("medium.iso");
    let bytes = whole.all();
    assert_eq!(bytes.len() as u64, whole.template.length());
    std::fs::write(&image, &bytes).unwrap();

    assert_eq!(in_iso(&image, "VMLINUZ"), whole.kernel);
    let initrd = in_iso(&image, "INITRD.IMG");
    let archives = whole.archives.concat();
    assert_eq!(initrd[..archives.len()], archives);
    let overlay_at = archives.len().next_multiple_of(4);
    assert_eq!(initrd.len(), overlay_at + OVERLAY);
    assert!(
        initrd[overlay_at..].starts_with(b"070701"),
        "the archive of the overlay begins at a multiple of 4"
    );
    let text = String::from_utf8_lossy(&initrd[overlay_at..]).into_owned();
    assert!(
        text.contains("etc/anneal/boot-parameters\0") && text.contains("anneal.boot-nonce=SECRET"),
        "{text}"
    );
    let configuration = String::from_utf8(in_iso(&image, "ISOLINUX.CFG")).unwrap();
    assert!(configuration.contains(&format!("APPEND {ARGUMENTS}\n")), "{configuration}");
    assert_eq!(in_iso(&image, "LDLINUX.C32"), loaders().ldlinux);

    let report =
        run(Command::new("xorriso").args(["-indev", image.to_str().unwrap(), "-report_el_torito", "plain"]));
    let report = String::from_utf8(report).unwrap();
    assert!(report.contains("BIOS") && report.contains("UEFI"), "{report}");
    let fat_at: u64 = efi_sector(&report) * 2048;
    let place = format!("{}@@{fat_at}", image.display());
    let program = run(Command::new("mtype").args(["-i", &place, "::/EFI/BOOT/BOOTX64.EFI"]));
    let sections = sections(&program, 2048);
    assert_eq!(sections[".linux"], whole.kernel);
    assert_eq!(sections[".initrd"], initrd);
    assert_eq!(sections[".cmdline"], ARGUMENTS.as_bytes());
    // mtools' own check of the FAT.
    let listing = run(Command::new("mdir").args(["-i", &place, "-/", "::"]));
    assert!(String::from_utf8_lossy(&listing).contains("BOOTX64"));
}

/// The sector of the image for UEFI: `El Torito boot img :   2  UEFI  y   none  0x0000  0x00  43984  105`.
fn efi_sector(report: &str) -> u64 {
    let line = report.lines().find(|line| line.contains("boot img") && line.contains("UEFI")).expect(report);
    line.split_whitespace().last().unwrap().parse().unwrap()
}

/// The field before it: how many sectors of 512 bytes a firmware loads.
fn efi_sectors(report: &str) -> u64 {
    let line = report.lines().find(|line| line.contains("boot img") && line.contains("UEFI")).expect(report);
    line.split_whitespace().rev().nth(1).unwrap().parse().unwrap()
}

/// El Torito counts up to 33.5 MB, and a FAT 16 has up to 134 MB in clusters of 2048 bytes.
#[test]
fn a_medium_may_be_larger_than_el_torito_counts() {
    for (mib, sectors) in [(30, 63_000..65_536), (40, 1..2), (160, 1..2)] {
        let sizes = Sizes { kernel: 1_000_003, archives: vec![mib << 20] };
        let whole = Whole {
            kernel: filled(1_000_003, 7),
            archives: vec![vec![7; usize::try_from(mib << 20).unwrap()]],
            program: Vec::new(),
            shim: Vec::new(),
            systemd_boot: Vec::new(),
            template: Template::new(&loaders(), &sizes, ARGUMENTS).unwrap(),
            overlay: Overlay::new("x", None).unwrap(),
        };
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("medium.iso");
        std::fs::write(&image, whole.all()).unwrap();
        let el_torito = ["-indev", image.to_str().unwrap(), "-report_el_torito", "plain"];
        let report = String::from_utf8(run(Command::new("xorriso").args(el_torito))).unwrap();
        assert!(sectors.contains(&efi_sectors(&report)), "{mib} MiB: {report}");
        let place = format!("{}@@{}", image.display(), efi_sector(&report) * 2048);
        let program = run(Command::new("mtype").args(["-i", &place, "::/EFI/BOOT/BOOTX64.EFI"]));
        let initrd = &sections(&program, 2048)[".initrd"];
        assert!(initrd.starts_with(&whole.archives[0]), "{mib} MiB");
        assert!(in_iso(&image, "INITRD.IMG") == *initrd, "{mib} MiB");
    }
}

/// ironic-python-agent mounts what has this label, and reads `parameters.txt`, as Linux shows it.
#[test]
fn the_medium_of_ironic_python_agent_has_its_parameters_in_a_file() {
    let of_ours = whole(1_000_003, &[3_000_001]);
    let sizes = Sizes { kernel: 1_000_003, archives: vec![3_000_001] };
    let arguments = "quiet boot_method=vmedia";
    let whole = Whole {
        template: Template::read_by(Reader::IronicPythonAgent, &loaders(), &sizes, arguments).unwrap(),
        overlay: Overlay::for_ironic_python_agent("ipa-api-url=https://192.0.2.1/SECRET ipa-debug=1")
            .unwrap(),
        ..of_ours
    };
    assert_eq!(whole.overlay.reader(), Reader::IronicPythonAgent);
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("medium.iso");
    std::fs::write(&image, whole.all()).unwrap();
    let label = run(Command::new("/sbin/blkid").args(["-p", "-o", "value", "-s", "LABEL"]).arg(&image));
    assert_eq!(String::from_utf8(label).unwrap().trim(), "IR-VFD-DEV");
    let text = String::from_utf8(in_iso(&image, "PARAMETERS.TXT")).unwrap();
    assert_eq!(text.len(), OVERLAY);
    let lines: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(lines, ["ipa-api-url=https://192.0.2.1/SECRET", "ipa-debug=1"]);
    assert_eq!(in_iso(&image, "VMLINUZ"), whole.kernel);
    let initrd = in_iso(&image, "INITRD.IMG");
    let (archive, behind) = initrd.split_at(3_000_001);
    assert!(archive == whole.archives[0] && behind.iter().all(|byte| *byte == 0));
    assert!(whole.bytes(0, 200_000) == whole.all()[..200_000]);
    assert!(Overlay::for_ironic_python_agent(&"x".repeat(OVERLAY + 1)).is_err());
}

/// Sections by the headers that were added.
fn sections(program: &[u8], alignment: usize) -> std::collections::BTreeMap<String, Vec<u8>> {
    let number = |at: usize| u32::from_le_bytes(program[at..at + 4].try_into().unwrap()) as usize;
    let table = 0x98 + 240 + 8 * 40;
    assert_eq!(u16::from_le_bytes(program[0x86..0x88].try_into().unwrap()), 12);
    let mut end_of_last = 0x19300;
    (0..4)
        .map(|index| table + 40 * index)
        .map(|at| {
            let name = String::from_utf8_lossy(&program[at..at + 8]).trim_end_matches('\0').to_owned();
            let (length, address, place) = (number(at + 8), number(at + 12), number(at + 20));
            assert!(address >= end_of_last && address % 4096 == 0 && place % alignment == 0, "{name}");
            end_of_last = address + length;
            assert!(number(0x98 + 56) >= end_of_last, "{name} is outside of the image");
            (name, program[place..place + length].to_vec())
        })
        .collect()
}

/// What is signed is all that is loaded, and the controllers that are obeyed can be read from it.
#[test]
fn a_program_to_sign_has_no_gaps_and_names_its_controllers() {
    let pins = ["ab", "CD"].map(|digits| format!("sha256:{}", digits.repeat(32))).to_vec();
    let line = arguments(&pins, "console=ttyS0").unwrap();
    let (kernel, initrd) = (filled(100_001, 7), filled(200_003, 8));
    let mut made = program(&stub(), &kernel, &initrd, &line).unwrap();
    let sections = sections(&made, 512);
    assert_eq!((&sections[".linux"], &sections[".initrd"]), (&kernel, &initrd));
    assert_eq!(sections[".cmdline"], line.as_bytes());
    let number = |at: usize| u32::from_le_bytes(made[at..at + 4].try_into().unwrap()) as usize;
    let headers = (0..12).map(|index| 0x98 + 240 + 40 * index);
    let mut end = 0x400;
    for at in headers.filter(|at| number(at + 16) > 0) {
        assert_eq!(number(at + 20), end, "a gap before the section at {at}");
        end += number(at + 16);
    }
    assert_eq!(end, made.len());

    assert!(obeyed(&made).unwrap_err().to_string().contains("it is not signed"));
    made[0x98 + 148] = 1;
    let head = &made[..made.len().min(usize::try_from(HEAD).unwrap())];
    let lower: Vec<String> = pins.iter().map(|pin| pin.to_lowercase()).collect();
    assert_eq!(obeyed(head).unwrap(), lower);
    assert!(obeyed(&made[..SECTIONS_END as usize]).unwrap_err().to_string().contains("cannot be read"));
    for (pins, more) in [(&[][..], ""), (&["sha256:ab".to_owned()], ""), (&pins, "anneal.obeys=x")] {
        assert_eq!(arguments(pins, more), Err(TemplateError::Pins));
    }
}

/// Read by others: the program unchanged, and the overlay where systemd's stub looks for it.
#[test]
fn the_medium_of_a_signed_program_shows_it_unchanged_and_the_overlay_next_to_it() {
    let signed = filled(3_000_001, 9);
    let whole = Whole {
        template: Template::signed(signed.len() as u64).unwrap(),
        program: signed.clone(),
        ..whole(1, &[])
    };
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("medium.iso");
    std::fs::write(&image, whole.all()).unwrap();
    let report =
        run(Command::new("xorriso").args(["-indev", image.to_str().unwrap(), "-report_el_torito", "plain"]));
    let report = String::from_utf8(report).unwrap();
    assert!(report.contains("UEFI") && !report.contains("BIOS"), "{report}");
    let place = format!("{}@@{}", image.display(), efi_sector(&report) * 2048);
    let file = |path: &str| run(Command::new("mtype").args(["-i", &place, path]));
    assert!(file("::/EFI/BOOT/BOOTX64.EFI") == signed);
    let overlay = file("::/EFI/BOOT/BOOTX64.EFI.extra.d/anneal.cred");
    assert_eq!(overlay.len(), OVERLAY);
    let text = String::from_utf8(overlay).unwrap();
    assert!(text.trim_end().starts_with(r#"{"parameters":"anneal.boot-nonce=SECRET"#), "{text}");
    assert!(matches!(Template::signed(2_000_000_001), Err(TemplateError::TooLarge(_))));
    let part = whole.bytes(1_000_000, 12_345);
    assert!(part == whole.all()[1_000_000..1_012_345]);
}

/// Read by others: shim and systemd-boot where a firmware and the shim look for them, the rest where systemd-boot does.
#[test]
fn the_medium_of_a_shim_has_loaders_and_the_ramdisk_in_one_file_system() {
    let (shim, systemd_boot) = (filled(960_080, 11), filled(129_561, 12));
    let sizes = Sizes { kernel: 1_000_003, archives: vec![3_000_001, 77] };
    let loaders = ShimSizes { shim: shim.len() as u64, systemd_boot: systemd_boot.len() as u64 };
    let template = Template::through_shim(loaders, &sizes, "quiet x=$y").unwrap();
    let whole = Whole {
        shim: shim.clone(),
        systemd_boot: systemd_boot.clone(),
        template,
        ..whole(1_000_003, &[3_000_001, 77])
    };
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("medium.iso");
    let all = whole.all();
    assert_eq!(all.len() as u64, whole.template.length());
    std::fs::write(&image, &all).unwrap();

    let report =
        run(Command::new("xorriso").args(["-indev", image.to_str().unwrap(), "-report_el_torito", "plain"]));
    let report = String::from_utf8(report).unwrap();
    assert!(report.contains("UEFI") && !report.contains("BIOS"), "{report}");
    let place = format!("{}@@{}", image.display(), efi_sector(&report) * 2048);
    let file = |path: &str| run(Command::new("mtype").args(["-i", &place, path]));
    assert!(file("::/EFI/BOOT/bootx64.efi") == shim);
    assert!(file("::/EFI/BOOT/grubx64.efi") == systemd_boot);
    assert!(file("::/vmlinuz") == whole.kernel);
    assert!(file("::/initrd.img") == whole.archives.concat());
    let overlay = file("::/node.img");
    assert!(overlay.len() == OVERLAY && overlay.starts_with(b"070701"));
    assert!(String::from_utf8_lossy(&overlay).contains("anneal.boot-nonce=SECRET"));
    let text = |path: &str| String::from_utf8(file(path)).unwrap();
    assert!(text("::/loader/loader.conf").contains("editor no\n"));
    let entry = text("::/loader/entries/anneal.conf");
    assert!(
        entry.contains("linux /vmlinuz\ninitrd /initrd.img\ninitrd /node.img\noptions quiet x=$y\n"),
        "{entry}"
    );
    let listed =
        String::from_utf8(run(Command::new("mdir").args(["-/", "-b", "-i", &place, "::/"]))).unwrap();
    assert_eq!(listed.lines().filter(|line| !line.ends_with('/')).count(), 7, "{listed}");
    let part = whole.bytes(2_000_000, 123_456);
    assert!(part == all[2_000_000..2_123_456]);
}

/// Issue 19: at most 500 kB beyond kernel and initramfs, also with those that are in use.
#[test]
fn the_template_is_small() {
    let (kernel, initramfs) = (8_247_232, 13_717_022);
    let sizes = Sizes { kernel, archives: vec![initramfs] };
    let began = std::time::Instant::now();
    let template = Template::new(&loaders(), &sizes, ARGUMENTS).unwrap();
    let made = began.elapsed();
    let began = std::time::Instant::now();
    let overlay = Overlay::new(&"x".repeat(2000), None).unwrap();
    let overlaid = began.elapsed();
    let beyond = template.length() - kernel - initramfs;
    println!("{beyond} bytes beyond kernel and initramfs, made in {made:?}; an overlay in {overlaid:?}");
    assert!(beyond <= 500_000, "{beyond}");
    assert!(!template.pieces(&overlay, 0, 1).is_empty());
}

#[test]
fn what_cannot_be_a_medium_is_refused_by_name() {
    let sizes = Sizes { kernel: 1 << 20, archives: vec![1 << 20] };
    let refused = |loaders: Loaders, sizes: &Sizes, arguments: &str| {
        Template::new(&loaders, sizes, arguments).unwrap_err().to_string()
    };
    let large = Sizes { kernel: 8 << 20, archives: vec![2_000_000_000] };
    assert!(refused(loaders(), &large, "").contains("too large"));
    assert!(matches!(Template::new(&loaders(), &large, ""), Err(TemplateError::TooLarge(_))));
    assert!(refused(loaders(), &sizes, "a\nb").contains("kernel arguments"));
    assert!(refused(loaders(), &sizes, &"x".repeat(2048)).contains("2047"));
    let broken = |change: fn(&mut Vec<u8>)| {
        let mut bad = loaders();
        change(&mut bad.stub);
        refused(bad, &sizes, "")
    };
    assert!(broken(|stub| stub.truncate(10)).contains("too short"));
    assert!(broken(|stub| stub[0x80] = b'X').contains("no PE program"));
    assert!(broken(|stub| stub[0x98 + 240 + 8 * 40 + 7] = 1).contains("no room"));
    assert!(refused(Loaders { isolinux: vec![0; 20], ..loaders() }, &sizes, "").contains("isolinux.bin"));
    let text = Overlay::new(&"x".repeat(OVERLAY), None).unwrap_err().to_string();
    assert!(text.contains("16384"), "{text}");
    assert!(!format!("{:?}", Overlay::new("SECRET", None).unwrap()).contains("SECRET"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_range_is_a_part_of_the_whole(first in 0_u64..9_000_000, count in 0_u64..3_000_000) {
        let whole = whole(300_000, &[200_001]);
        let all = whole.all();
        let end = usize::try_from(first.saturating_add(count)).unwrap().min(all.len());
        let expected = all.get(usize::try_from(first).unwrap()..end).unwrap_or_default();
        prop_assert!(whole.bytes(first, count) == expected);
    }
}
