//! Methods that are one command for the whole drive.

use super::record::Attempt;
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

pub(super) fn run(method: Method, target: &dyn Target, watch: &dyn Watch) -> Attempt {
    let result = match method {
        // One request that ends when it is done: bytes jump from none to all.
        Method::NvmeFormat => blocking(method, target, watch, || format(target, SecureErase::UserData)),
        Method::NvmeFormatCrypto => blocking(method, target, watch, || format(target, SecureErase::Crypto)),
        Method::OpalRevert => {
            blocking(method, target, watch, || with(method, target, watch, &|_| {}, opal_revert::run))
        }
        Method::AtaErase | Method::AtaEnhancedErase => {
            let enhanced = method == Method::AtaEnhancedErase;
            blocking(method, target, watch, || {
                with(method, target, watch, &|_| {}, |work| ata_security::run(work, enhanced))
            })
        }
        _ => followed(method, target, watch),
    };
    (if result.is_ok() { target.size() } else { 0 }, result)
}

fn format(target: &dyn Target, erase: SecureErase) -> Result<(), Fault> {
    target.format(erase).map_err(|source| Fault::Command { what: "NVMe Format", source })
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

/// A method that the drive runs by itself, and whose progress it reports.
fn followed(method: Method, target: &dyn Target, watch: &dyn Watch) -> Result<(), Fault> {
    let (meter, total) = (Mutex::new(Meter::default()), target.size());
    let report = |progress: u16| {
        let done = u64::try_from(u128::from(total) * u128::from(progress) / 65536).unwrap_or(0);
        let rate = meter.lock().unwrap_or_else(PoisonError::into_inner).rate(Instant::now(), done);
        let (phase, method, eta) = (Phase::Erasing, Some(method), eta(done, total, rate));
        watch.progress(Progress { phase, method, done, total, rate, eta });
    };
    with(method, target, watch, &report, |work| match method {
        Method::Sanitize(Family::Nvme, operation) => nvme_sanitize::run(work, operation),
        Method::Sanitize(Family::Ata, operation) => ata_sanitize::run(work, operation),
        Method::Sanitize(Family::Scsi, operation) => scsi_sanitize::run(work, operation),
        Method::EmmcSanitize => emmc_sanitize::run(work),
        _ => scsi_format::run(work),
    })?;
    let (phase, method, done) = (Phase::Erasing, Some(method), total);
    watch.progress(Progress { phase, method, done, total, rate: 0, eta: None });
    Ok(())
}

fn with(
    method: Method,
    target: &dyn Target,
    watch: &dyn Watch,
    report: &dyn Fn(u16),
    run: impl Fn(&Work<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some(drive) = target.drive() else {
        let source = io::Error::from(io::ErrorKind::Unsupported);
        return Err(Fault::Command { what: "a command to the drive", source });
    };
    run(&Work { drive, report, watch, estimate: estimate(drive.probe, method) })
}
