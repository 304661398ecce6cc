//! A boot in which signed loaders start the kernel, with an initrd that nothing signs: the TPM shows what they started, the kernel command
//! line and the initrd.

use crate::scene::{Challenge, Known, booted, exhibit, judged};
use software_tpm::{Boot, Measured, program};
use tpm::{Digest, Initramfs, ProgramError, Proof, Refusal, predict_loaded};

const LINE: &str = "initrd=\\initrd.img initrd=\\node.img anneal.ramdisk quiet";
const INITRD: &[u8] = b"initramfs, and what is of this boot";

fn programs() -> [Vec<u8>; 3] {
    ["a shim", "a loader", "a kernel"].map(|text| program(&[(".text", text.as_bytes())]))
}

fn known() -> Known {
    let [shim, loader, kernel] = programs();
    let program = predict_loaded(&[&shim, &loader], &kernel, LINE, Digest::of(INITRD)).expect("programs");
    Known { program, enrolled: None }
}

fn proved(boot: &Boot) -> Result<Proof, Refusal> {
    let shown = exhibit(&booted(boot), boot.log(), &Challenge::default());
    judged(&shown, &Challenge::default(), &known())
}

#[test]
fn a_boot_through_loaders_is_proved() {
    let started = known().program.programs;
    let proof = proved(&Boot::loaded(&started, LINE, INITRD)).expect("an honest boot");
    assert_eq!(proof.changes, []);
    let mut recorded =
        exhibit(&booted(&Boot::loaded(&started, LINE, INITRD)), Vec::new(), &Challenge::default());
    recorded.log = Boot::loaded(&started, LINE, INITRD).log();
    let enrolled = Some((recorded.endorsement_key.clone(), proof.measurements));
    let proof = judged(&recorded, &Challenge::default(), &Known { enrolled, ..known() }).expect("the same");
    assert_eq!(proof.changes, []);
}

#[test]
fn what_was_changed_is_named() {
    let started = known().program.programs;
    let refused = |boot: Boot| proved(&boot).expect_err("it was changed");
    let line = refused(Boot::loaded(&started, "initrd=\\initrd.img init=/bin/sh", INITRD));
    assert!(matches!(line, Refusal::CommandLine { .. }), "{line}");
    let initrd = refused(Boot::loaded(&started, LINE, b"initramfs, and what is of another boot"));
    assert!(
        matches!(initrd, Refusal::Initrd { predicted, .. } if predicted == Digest::of(INITRD)),
        "{initrd}"
    );
    // A kernel that measures no initrd, or one behind something else.
    let mut none = Boot::loaded(&started, LINE, INITRD);
    let own = none.events.pop().expect("its initrd");
    let missing = refused(none.clone());
    assert!(matches!(missing, Refusal::Initrd { measured: Digest::ZERO, .. }), "{missing}");
    none.events.extend([Measured::data(9, software_tpm::TAG, b"another"), own]);
    assert!(matches!(refused(none), Refusal::Initrd { .. }));
    // Each of the programs has to be there, in whichever way the kernel came to its command line.
    for left_out in 0..started.len() {
        let mut some = started.clone();
        let missing = some.remove(left_out);
        let refusal = refused(Boot::loaded(&some, LINE, INITRD));
        assert!(matches!(refusal, Refusal::Program { predicted, .. } if predicted == missing), "{refusal}");
    }
    // systemd's stub was started, too.
    let mut stub = Boot::loaded(&started, LINE, INITRD);
    stub.events.push(Measured::data(11, software_tpm::TAG, b".linux"));
    assert!(matches!(refused(stub), Refusal::Parts { predicted: Digest::ZERO, .. }));
}

#[test]
fn another_program_is_a_change_that_an_operator_sees() {
    let mut started = known().program.programs;
    started.insert(1, Digest::of(b"a loader that someone has signed"));
    let proof = proved(&Boot::loaded(&started, LINE, INITRD)).expect("the ramdisk was started");
    assert_eq!(proof.changes.len(), 1);
}

#[test]
fn what_is_no_program_is_named() {
    let [shim, loader, kernel] = programs();
    let made = |loaders: &[&[u8]], kernel: &[u8]| predict_loaded(loaders, kernel, LINE, Digest::ZERO);
    assert!(matches!(made(&[&shim, b"MZ"], &kernel), Err(ProgramError::Malformed(_))));
    assert!(matches!(made(&[&shim, &loader], b""), Err(ProgramError::Malformed(_))));
    let predicted = made(&[&shim, &loader], &kernel).expect("programs");
    assert_eq!((predicted.programs.len(), predicted.initramfs), (3, Initramfs::Initrd(Digest::ZERO)));
}
