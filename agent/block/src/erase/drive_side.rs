//! Methods that are one command for the whole drive.

use super::record::DriveAttempt;
use crate::drive::{
    Work, ata_sanitize, ata_security, emmc_sanitize, nvme_sanitize, opal_revert, scsi_format, scsi_sanitize,
};
use crate::fault::Fault;
use crate::method::{Family, Method};
use crate::nvme::SecureErase;
use crate::pass::Pass;
use crate::plan::estimate;
use crate::progress::{Meter, Phase, Progress, Watch, eta};
use crate::target::Target;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

pub(super) fn run(method: Method, target: &dyn Target, watch: &dyn Watch) -> DriveAttempt {
    let result = match method {
        // One request that ends when it is done: bytes jump from none to all.
        Method::NvmeFormat => unreported(method, target, watch, || format(target, SecureErase::UserData)),
        Method::NvmeFormatCrypto => unreported(method, target, watch, || format(target, SecureErase::Crypto)),
        Method::OpalRevert => {
            blocking(method, target, watch, || with(method, target, watch, &|_| {}, opal_revert::run))
                .map(|()| true)
        }
        Method::AtaErase | Method::AtaEnhancedErase => {
            let enhanced = method == Method::AtaEnhancedErase;
            unreported(method, target, watch, || {
                with(method, target, watch, &|_| {}, |work| ata_security::run(work, enhanced))
            })
        }
        _ => followed(method, target, watch),
    };
    let bytes = if result.is_ok() { target.size() } else { 0 };
    (bytes, result.map(|reported| method.device_status().filter(|_| reported)))
}

fn format(target: &dyn Target, erase: SecureErase) -> Result<(), Fault> {
    target.format(erase).map_err(|source| Fault::Command { what: "NVMe Format", source })
}

/// As [`blocking`], of a method whose end no log of the drive reports.
fn unreported(
    method: Method,
    target: &dyn Target,
    watch: &dyn Watch,
    work: impl Fn() -> Result<(), Fault> + Sync,
) -> Result<bool, Fault> {
    blocking(method, target, watch, work).map(|()| false)
}

/// A method that cannot be asked how far it is, run next to its watcher.
fn blocking(
    method: Method,
    target: &dyn Target,
    watch: &dyn Watch,
    work: impl Fn() -> Result<(), Fault> + Sync,
) -> Result<(), Fault> {
    let pass = Pass::erasing(method, target, target.size().max(1), watch);
    let lane = |_: u64, length: u64, count: &mut dyn FnMut(u64)| {
        work()?;
        count(length);
        Ok(ControlFlow::Continue(()))
    };
    pass.run([lane]).result
}

/// A method that the drive runs by itself, and whose progress it reports. Returns whether it also reports its success.
fn followed(method: Method, target: &dyn Target, watch: &dyn Watch) -> Result<bool, Fault> {
    let (meter, total) = (Mutex::new(Meter::default()), target.size());
    let report = |progress: u16| {
        let done = u64::try_from(u128::from(total) * u128::from(progress) / 65536).unwrap_or(0);
        let rate = meter.lock().unwrap_or_else(PoisonError::into_inner).rate(Instant::now(), done);
        let (phase, method, eta) = (Phase::Erasing, Some(method), eta(done, total, rate));
        watch.progress(Progress { phase, method, done, total, rate, eta });
    };
    let reported = with(method, target, watch, &report, |work| match method {
        Method::Sanitize(Family::Nvme, operation) => nvme_sanitize::run(work, operation).map(|()| true),
        Method::Sanitize(Family::Ata, operation) => ata_sanitize::run(work, operation).map(|()| true),
        Method::Sanitize(Family::Scsi, operation) => scsi_sanitize::run(work, operation),
        Method::EmmcSanitize => emmc_sanitize::run(work).map(|()| false),
        _ => scsi_format::run(work).map(|()| false),
    })?;
    let (phase, method, done) = (Phase::Erasing, Some(method), total);
    watch.progress(Progress { phase, method, done, total, rate: 0, eta: None });
    Ok(reported)
}

fn with<T>(
    method: Method,
    target: &dyn Target,
    watch: &dyn Watch,
    report: &dyn Fn(u16),
    run: impl Fn(&Work<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let Some(drive) = target.drive() else {
        let source = io::Error::from(io::ErrorKind::Unsupported);
        return Err(Fault::Command { what: "a command to the drive", source });
    };
    run(&Work { drive, report, watch, estimate: estimate(drive.probe, method) })
}
