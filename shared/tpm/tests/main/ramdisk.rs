//! What is predicted of a signed ramdisk.

use crate::scene::ramdisk;
use software_tpm::{Ramdisk, program};
use std::process::Command;
use tpm::{Digest, ProgramError, predict};

/// sbsign computes the same digest, and puts it into the signature.
#[test]
fn the_digest_of_a_program_is_the_one_that_is_signed() {
    let place = tempfile::tempdir().expect("a directory");
    let run = |program: &str, arguments: &[&str]| {
        let out = Command::new(program).args(arguments).current_dir(place.path()).output().expect(program);
        assert!(out.status.success(), "{program}: {}", String::from_utf8_lossy(&out.stderr));
    };
    run(
        "openssl",
        &["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=t/", "-keyout", "k", "-out", "c"],
    );
    std::fs::write(place.path().join("plain"), &ramdisk().file).expect("written");
    run("sbsign", &["--key", "k", "--cert", "c", "--output", "signed", "plain"]);
    let signed = std::fs::read(place.path().join("signed")).expect("signed");
    let predicted = predict(&signed).expect("a ramdisk");
    assert!(signed.len() > ramdisk().file.len());
    let signature = &signed[ramdisk().file.len()..];
    assert!(
        signature.windows(32).any(|window| window == predicted.programs[0].0),
        "another digest was signed"
    );
    // The signature is not part of it.
    assert_eq!(predict(&ramdisk().file).expect("a ramdisk"), predicted);
}

#[test]
fn every_part_is_predicted() {
    let was = predict(&ramdisk().file).expect("a ramdisk");
    let line = predict(&Ramdisk::new("other", b"an initramfs").file).expect("a ramdisk");
    let initramfs = predict(&Ramdisk::new(&ramdisk().line, b"another").file).expect("a ramdisk");
    assert!(line.command_line != was.command_line && line.initramfs != was.initramfs);
    assert!(
        initramfs.initramfs != was.initramfs
            && ![line.programs[0], was.programs[0]].contains(&initramfs.programs[0])
    );
    assert_ne!(line.programs[0], was.programs[0]);
    assert_eq!((initramfs.command_line, initramfs.programs[1]), (was.command_line, was.programs[1]));
}

#[test]
fn what_is_no_signed_ramdisk_is_named() {
    let text = |file: &[u8]| predict(file).expect_err("none").to_string();
    assert!(text(b"").contains("ends too early"));
    assert!(text(&[0; 4096]).contains("no EFI program"));
    assert!(text(&program(&[(".text", b"x")])).contains("mark of systemd's stub"));
    let newer = program(&[(".sdmagic", b"#### LoaderInfo: systemd-stub 257.1 ####\0")]);
    assert!(matches!(predict(&newer), Err(ProgramError::Stub(text)) if text.contains("257.1")));
    let stub: (&str, &[u8]) = (".sdmagic", b"systemd-stub 252");
    assert!(text(&program(&[stub])).contains("no kernel"));
    let twice = program(&[stub, (".linux", b"x"), (".linux", b"y")]);
    assert!(text(&twice).contains("two sections"));
    let file = ramdisk().file;
    for length in (0..file.len()).step_by(97) {
        let _ = predict(&file[..length]);
    }
}

#[test]
fn the_command_line_is_measured_as_the_kernel_gets_it() {
    let shown = predict(&Ramdisk::new("a=ü \n", b"").file).expect("a ramdisk");
    let units: Vec<u8> = "a=ü".encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    assert_eq!(shown.command_line, Digest::of(&units));
}
