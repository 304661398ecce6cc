//! Why a boot is not proved: each attack has its name.

use crate::digest::Digest;
use crate::event_log::LogError;
use crate::key::Name;
use crate::quote::QuoteError;

/// Why a boot is not proved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The machine is another one, or has got another board.
    #[error("another TPM than the node's: its endorsement key is {shown}, enrolled is {enrolled}")]
    OtherTpm {
        /// Name of the key that was shown.
        shown: Name,
        /// Name of the node's.
        enrolled: Name,
    },
    /// The certificate is that of another key.
    #[error("the endorsement certificate that was shown is not that of the endorsement key")]
    Certificate,
    /// A software key, or a key in another TPM.
    #[error("the attestation key was not activated: it is not in the TPM with the endorsement key")]
    NotActivated,
    /// No quote, or none of this key.
    #[error(transparent)]
    Quote(#[from] QuoteError),
    /// Of another nonce, another TLS key, another evidence key or another boot: replayed, or passed on.
    #[error("the quote is not of this challenge, this boot and these keys of the agent")]
    OtherChallenge,
    /// Others than were asked for.
    #[error("the quote covers the PCRs {0:?}, asked for were others")]
    OtherPcrs(Vec<u8>),
    /// The values that were shown are not those that were quoted.
    #[error("the PCRs that were shown are not those that were quoted")]
    PcrValues,
    /// It cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Something was measured that the log does not show, or the log shows what was not measured.
    #[error("the event log does not give the quoted PCR {pcr}: it gives {replayed}, quoted is {quoted}")]
    Replay {
        /// Which.
        pcr: u8,
        /// Of the log.
        replayed: Digest,
        /// Of the TPM.
        quoted: Digest,
    },
    /// By BIOS, iPXE or a boot loader.
    #[error("no kernel command line was measured: this was no boot of the ramdisk")]
    NotMeasured,
    /// Changed.
    #[error(
        "the kernel command line is not the ramdisk's: its digest is {measured}, predicted is {predicted}"
    )]
    CommandLine {
        /// In PCR 9.
        measured: Digest,
        /// Of the ramdisk.
        predicted: Digest,
    },
    /// Changed, another one, or a disk was booted.
    #[error("the firmware did not start a program of the ramdisk, whose digest is {predicted}; it started {}", list(.started))]
    Program {
        /// In PCR 4.
        started: Vec<Digest>,
        /// The signed ramdisk, a loader or the kernel.
        predicted: Digest,
    },
    /// Changed.
    #[error(
        "parts of the ramdisk are not those that were signed: PCR 11 is {measured}, predicted is {predicted}"
    )]
    Parts {
        /// In PCR 11.
        measured: Digest,
        /// Of the signed ramdisk; zeros where loaders start it.
        predicted: Digest,
    },
    /// Changed, or of another boot.
    #[error(
        "the initramfs is not what the controller sent for this boot: its digest is {measured}, predicted is {predicted}"
    )]
    Initrd {
        /// In PCR 9 after the command line; zeros: nothing.
        measured: Digest,
        /// Initramfs and overlay of this boot.
        predicted: Digest,
    },
}

fn list(digests: &[Digest]) -> String {
    /// More are of no use in a text.
    const SHOWN: usize = 4;
    if digests.is_empty() {
        return "nothing".to_owned();
    }
    let shown: Vec<String> = digests.iter().take(SHOWN).map(Digest::to_string).collect();
    let more = if digests.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
