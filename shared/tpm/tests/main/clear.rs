//! Clearing between two users.

use crate::scene::prover;
use software_tpm::SoftwareTpm;
use tpm::{ClearAuthority, Prover, Tpm};

/// `TPM2_HierarchyChangeAuth` of a hierarchy without a password.
fn set_password(tpm: &SoftwareTpm, hierarchy: u8) {
    let mut command = vec![0x80, 0x02, 0, 0, 0, 33, 0, 0, 0x01, 0x29, 0x40, 0, 0, hierarchy];
    command.extend([0, 0, 0, 9, 0x40, 0, 0, 9, 0, 0, 0, 0, 0]);
    command.extend([0, 4]);
    command.extend(b"mine");
    tpm.command(&command);
}

const ENDORSEMENT: u8 = 0x0b;
const LOCKOUT: u8 = 0x0a;

#[test]
fn a_password_of_the_endorsement_hierarchy_is_named_and_gone_after_clearing() {
    let tpm = SoftwareTpm::new();
    let key = *prover(&tpm).endorsement_key().name();
    set_password(&tpm, ENDORSEMENT);
    let Err(refused) = Prover::new(Tpm::new(tpm.connect()), &[0; 32]) else { panic!("it has a password") };
    assert!(refused.to_string().contains("someone has set a password"), "{refused}");
    let mut own = Tpm::new(tpm.connect());
    assert_eq!(own.clear_authority().expect("answered"), ClearAuthority::System);
    own.clear().expect("cleared");
    drop(own);
    assert_eq!(*prover(&tpm).endorsement_key().name(), key);
}

#[test]
fn a_tpm_that_only_its_user_or_the_firmware_clear_authority_says_so_and_no_password_is_tried() {
    let tpm = SoftwareTpm::new();
    set_password(&tpm, LOCKOUT);
    let mut own = Tpm::new(tpm.connect());
    assert_eq!(own.clear_authority().expect("answered"), ClearAuthority::Password);
    assert!(own.clear().is_err());
    drop(own);
    let other = SoftwareTpm::new();
    // TPM2_ClearControl: yes.
    let mut command = vec![0x80, 0x02, 0, 0, 0, 28, 0, 0, 0x01, 0x27, 0x40, 0, 0, LOCKOUT];
    command.extend([0, 0, 0, 9, 0x40, 0, 0, 9, 0, 0, 0, 0, 0, 1]);
    other.command(&command);
    assert_eq!(Tpm::new(other.connect()).clear_authority().expect("answered"), ClearAuthority::Firmware);
}
