//! The log of a real firmware: OVMF 2022.11 of Debian 12 in QEMU 7.2 with swtpm, a signed ramdisk of `boot_media::signed::program`
//! with systemd's stub 252.39-1~deb12u2, Debian's kernel 6.1.192-2 and an overlay next to it. What was predicted of that
//! ramdisk's file is as the firmware measured it.

use crate::scene::{Challenge, Exhibit, Known, exhibit, judged};
use software_tpm::SoftwareTpm;
use tpm::{Digest, Initramfs, LogError, PCRS, Prediction, Refusal, parse_event_log, replay};

const LOG: &[u8] = include_bytes!("../fixtures/ovmf.log");

/// As Linux showed them in `/sys/class/tpm/tpm0/pcr-sha256`.
const QUOTED: [(u8, &str); 7] = [
    (0, "177e29c417b6b61c7cf46ed30b4468931f58642527a268b556254e39b941ec6a"),
    (2, "3d458cfe55cc03ea1f443f1562beec8df51c75e14a9fcf9a7234a13f198e7969"),
    (3, "3d458cfe55cc03ea1f443f1562beec8df51c75e14a9fcf9a7234a13f198e7969"),
    (4, "bf887c42f6283d92a51de9af8a9274736fb1dedf332dbb1aa10b5fdea42f9624"),
    (7, "65caf8dd1e0ea7a6347b635d2b379c93b9a1351edc2afc3ecda700e534eb3068"),
    (9, "b8900c283321d8ddfbac71b21ab4677135624566cc39ff5db28556686a93e336"),
    (11, "bedf3684729a22db58a8767f39c62897da30d66e025b86f82a4500955489c2eb"),
];

fn digest(text: &str) -> Digest {
    text.parse().expect("a digest")
}

/// As `predict` gave it for the file of that ramdisk, which has 9.4 MB.
fn predicted() -> Prediction {
    Prediction {
        programs: vec![
            digest("a2684b3c27a966c45aaedf4900e818c58f56f4a03351719fea3845c4915c0b25"),
            digest("6b1bf35c3bee9918250f593a6fff889c75c1e239cd2fe9e5bb0cd3de9dcb8e51"),
        ],
        command_line: digest("075ca162d05dacfa96328c095cba0268143bd0e47832d3f241a0bcffc177347b"),
        initramfs: Initramfs::Parts(digest(
            "bedf3684729a22db58a8767f39c62897da30d66e025b86f82a4500955489c2eb",
        )),
    }
}

/// A TPM that holds what that firmware measured.
fn machine() -> SoftwareTpm {
    let tpm = SoftwareTpm::new();
    for event in parse_event_log(LOG).expect("a log").0 {
        tpm.extend(u8::try_from(event.pcr).expect("a PCR"), event.digest);
    }
    tpm
}

#[test]
fn a_real_log_gives_the_pcrs() {
    let log = parse_event_log(LOG).expect("a log");
    for (pcr, value) in QUOTED {
        assert_eq!(replay(&log, pcr).to_string(), value, "PCR {pcr}");
    }
    assert!(QUOTED.iter().map(|(pcr, _)| *pcr).eq(PCRS));
}

#[test]
fn a_real_boot_is_proved() {
    let known = Known { program: predicted(), enrolled: None };
    let shown = exhibit(&machine(), LOG.to_vec(), &Challenge::default());
    let proof = judged(&shown, &Challenge::default(), &known).expect("an honest boot");
    assert_eq!(proof.changes, []);
    let other = Known { program: Prediction { programs: vec![Digest::ZERO], ..predicted() }, enrolled: None };
    let refusal = judged(&shown, &Challenge::default(), &other).expect_err("another ramdisk");
    assert!(matches!(&refusal, Refusal::Program { started, .. } if *started == predicted().programs));
}

#[test]
fn a_log_that_breaks_off_anywhere_is_refused_by_name() {
    let tpm = machine();
    let whole = exhibit(&tpm, LOG.to_vec(), &Challenge::default());
    let known = Known { program: predicted(), enrolled: None };
    for length in (0..LOG.len()).step_by(53) {
        let shown = Exhibit { log: LOG[..length].to_vec(), ..whole.clone() };
        let refusal = judged(&shown, &Challenge::default(), &known).expect_err("it breaks off");
        assert!(matches!(refusal, Refusal::Log(_) | Refusal::Replay { .. }), "{length}: {refusal}");
    }
    let mut sha1 = LOG.to_vec();
    let at = sha1.windows(4).position(|window| window == [0x0b, 0, 32, 0]).expect("its algorithms");
    sha1[at] = 0x0c;
    assert_eq!(parse_event_log(&sha1), Err(LogError::NoSha256));
}
