//! The firmware finds the image that was written: disks that sgdisk, mkfs.vfat and mtools made, variables as files.

use agentd::uefi::{self, Machine};
use boot_entries::Efivars;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const GUID: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
const MIB: u64 = 1 << 20;

fn run(program: &str, arguments: &[&str], input: &[u8]) {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("installed (cargo xtask deps)");
    child.stdin.take().expect("a pipe").write_all(input).expect("its input");
    assert!(child.wait().expect("its end").success(), "{program} {arguments:?}");
}

/// An image with an EFI system partition that holds what Debian's does.
fn image(directory: &Path, name: &str) -> block::Disk {
    let path = directory.join(name);
    let text = path.to_str().expect("a path");
    std::fs::File::create(&path).and_then(|file| file.set_len(32 * MIB)).expect("an image");
    run("sgdisk", &["-n", "15:4096:+16M", "-t", "15:ef00", text], b"");
    run("mkfs.vfat", &["--offset", "4096", "-F", "16", text, "16384"], b"");
    let inside = format!("{text}@@2M");
    run("mmd", &["-i", &inside, "::EFI", "::EFI/debian"], b"");
    let list: Vec<u8> =
        "\u{feff}shimx64.efi,debian,,Debian".encode_utf16().flat_map(u16::to_le_bytes).collect();
    run("mcopy", &["-i", &inside, "-", "::EFI/debian/BOOTX64.CSV"], &list);
    run("mcopy", &["-i", &inside, "-", "::EFI/debian/shimx64.efi"], b"MZ");
    let serial = Some(name.to_owned());
    block::Disk { path, serial, size: 32 * MIB, logical_block: 512, ..block::Disk::default() }
}

/// What the result says.
fn install(machine: &Machine, device: &str) -> Result<Value, String> {
    uefi::install(machine, device).map(|entries| serde_json::to_value(entries).expect("JSON"))
}

fn machine(directory: &Path, disks: Vec<block::Disk>) -> Machine {
    let variables = directory.join("efivars");
    std::fs::create_dir(&variables).expect("a directory");
    std::fs::write(variables.join(format!("BootOrder-{GUID}")), [7, 0, 0, 0, 4, 0]).expect("written");
    Machine { disks, variables: Efivars::at(&variables), unattached: Vec::new() }
}

#[test]
fn the_entry_is_for_the_disk_that_was_written_and_the_result_names_what_was_done() {
    let directory = tempfile::tempdir().expect("a directory");
    let disks = vec![image(directory.path(), "a.img"), image(directory.path(), "b.img")];
    let device = disks[1].path.to_str().expect("a path").to_owned();
    let machine = machine(directory.path(), disks);
    // The same system was on a disk that is gone.
    let old = machine.disks[0].path.clone();
    install(&machine, old.to_str().expect("a path")).expect("installed");
    run("sgdisk", &["-Z", old.to_str().expect("a path")], b"");

    let report = install(&machine, &device).expect("installed");
    let expected = json!({
        "entry": "Boot0000", "label": "debian", "added": true, "device": device, "serial": "b.img",
        "loader": r"\EFI\debian\shimx64.efi",
        "removed": [{"number": "0000", "label": "debian", "why": "same_label"}], "order": ["0000", "0004"],
    });
    assert_eq!(report, expected);
    let again = install(&machine, &device).expect("installed");
    assert_eq!((&again["added"], &again["removed"]), (&json!(false), &json!([])));
}

#[test]
fn an_entry_is_dead_only_where_all_storage_can_be_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut machine = machine(directory.path(), vec![image(directory.path(), "a.img")]);
    let device = machine.disks[0].path.to_str().expect("a path").to_owned();
    install(&machine, &device).expect("installed");
    let mut dead = machine.variables.read("Boot0000").expect("read").expect("an entry");
    // "d" of "debian", and the GUID of the partition.
    dead[6] = b'x';
    dead[48] ^= 0xff;
    machine.variables.write("Boot0001", &dead).expect("written");
    let gone = block::Disk { path: directory.path().join("gone"), ..machine.disks[0].clone() };

    machine.unattached = vec!["NVMe controller nvme0 is \"dead\"".to_owned()];
    let report = install(&machine, &device).expect("installed");
    assert_eq!((&report["removed"], report["partitions_unknown"].is_string()), (&json!([]), true));
    machine.unattached.clear();
    machine.disks.push(gone);
    let report = install(&machine, &device).expect("installed");
    assert_eq!((&report["removed"], report["partitions_unknown"].is_string()), (&json!([]), true));
    machine.disks.pop();
    let report = install(&machine, &device).expect("installed");
    assert_eq!(report["removed"], json!([{"number": "0001", "label": "xebian", "why": "no_such_partition"}]));
}

#[test]
fn what_cannot_be_booted_changes_no_variable() {
    let directory = tempfile::tempdir().expect("a directory");
    let machine = machine(directory.path(), vec![image(directory.path(), "a.img")]);
    let device = machine.disks[0].path.to_str().expect("a path").to_owned();
    run("mdel", &["-i", &format!("{device}@@2M"), "::EFI/debian/shimx64.efi"], b"");
    let problem = install(&machine, &device).expect_err("no loader");
    assert!(problem.contains(&format!("(number 15) of {device} cannot be booted")), "{problem}");
    assert!(problem.contains(r"names the loader \EFI\debian\shimx64.efi, which is not there"), "{problem}");
    assert!(install(&machine, "/dev/other").expect_err("gone").contains("/dev/other"));
    assert_eq!(machine.variables.numbers("BootOrder").expect("read"), [4]);
}
