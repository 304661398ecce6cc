//! Power is lost in the middle of a long overwrite, once or (`--times`, a fifth of it) more often. The next boot goes on from the last checkpoint, the whole disk is read
//! back all the same, and the certificate of it is judged on a desk without the controller.

use anyhow::{Context, Result, ensure};
use lab::disk::{Bus, Fault};
use lab::wait;
use std::time::Duration;

use crate::certificate::{fetched, verify};
use crate::node::{Node, count, erasing, history};
use crate::stage::{ERASE, LONG, NO_METADATA, NODE, SHORT, Stage, cleaned, full_speed, manageable};

pub const ABOUT: &str =
    "power lost in a long overwrite: it goes on from its checkpoint, and its certificate holds on a desk";

/// The engine reports a checkpoint after each of these.
const CHECKPOINT: u64 = 64 << 20;
/// Written in a second.
const RATE: u64 = 12 << 20;
/// From a checkpoint on until the power is cut.
const ANY_TIME: Duration = Duration::from_secs(4);
/// MiB that are erased between two cuts, at most: a checkpoint lost with the power, the next one, and any time after it.
const MIB_PER_CUT: u64 = 192;

/// Power cuts where others have `times`.
pub fn cuts(times: u64) -> u64 {
    times.div_ceil(5)
}

pub async fn story(stage: Stage) -> Result<()> {
    let cuts = cuts(stage.times);
    let size = (MIB_PER_CUT * cuts + 64) << 20;
    let long = stage.disk("LONG", Bus::Sata, size >> 20)?.with(Fault::SlowWrites(RATE));
    let mut site = stage.site(&format!("{NO_METADATA}max_interruptions = {cuts}\n")).await?;
    let node = manageable(&mut site, &[&long]).await?;
    site.controller.provision(NODE, "provide").await?;

    let mut moments = stage.moments();
    let mut before = long.findings()?;
    let mut wanted = CHECKPOINT + (4 << 20);
    for cut in 1..=cuts {
        #[allow(clippy::cast_precision_loss, reason = "a share of a small disk")]
        let share = wanted as f64 / size as f64;
        let seen = erasing(&site.controller, NODE, "LONG", share, LONG).await;
        let (_, progress) = seen.with_context(|| format!("before cut {cut}"))?;
        // Progress comes in heartbeats, checkpoints when the agent is asked.
        let kept = wanted / CHECKPOINT * CHECKPOINT;
        wait::until("the controller to have the checkpoint", SHORT, || async {
            let node = Node::now(&site.controller, NODE).await?;
            Ok((node.anneal()["run"]["resumes_from"].as_u64() >= Some(kept)).then_some(()))
        })
        .await
        .with_context(|| format!("before cut {cut}"))?;
        moments.pass(ANY_TIME).await;
        node.machine.power_off().await?;
        // At least one checkpoint more than now.
        wanted = progress.bytes_done / CHECKPOINT * CHECKPOINT + CHECKPOINT + (4 << 20);
        let left = long.findings()?;
        ensure!(left.unchanged > 0, "cut {cut}: the erase ended too early for this scenario");
        ensure!(left.unchanged < before.unchanged, "cut {cut}: the boot before it brought nothing");
        before = left;
        let certificates = site.controller.get(&format!("/v1/anneal/certificates?node={NODE}")).await?;
        ensure!(certificates["certificates"].as_array().is_some_and(Vec::is_empty), "{certificates}");
        wait::until("the step to begin again", LONG, || async {
            let begun = count(&site.controller, NODE, &format!("step {ERASE} begins")).await?;
            Ok((u64::try_from(begun)? == cut + 1).then_some(()))
        })
        .await
        .with_context(|| format!("after cut {cut}"))?;
    }
    #[allow(clippy::cast_precision_loss, reason = "a share of a small disk")]
    let share = wanted as f64 / size as f64;
    erasing(&site.controller, NODE, "LONG", share.min(0.95), LONG).await.context("after the last cut")?;
    full_speed(&node.machine, 0).await?;
    let after = cleaned(&site.controller, "available").await?;
    long.ensure_erased()?;
    let record = after.record(ERASE, "LONG")?;
    ensure!(
        record.resumed_from.is_some_and(|from| from >= CHECKPOINT * cuts),
        "it began too early: {record:?}"
    );
    let seen = record.verification.as_ref().context("not verified")?;
    ensure!(seen.passed && seen.bytes_read == record.size, "not all of it was read back: {seen:?}");
    ensure!(seen.samples > 0, "nothing is known of the content before the interruption: {seen:?}");
    let events = history(&site.controller, NODE).await?;
    let interrupted =
        |event: &String| event.contains("lost power") && event.contains("goes on from its checkpoint");
    ensure!(events.iter().any(interrupted), "the interruption is not in the history: {events:?}");

    let certificate = after.results(ERASE)[0]["certificate"].as_str().context("no certificate")?.to_owned();
    let (file, key) = fetched(&site.controller, &certificate).await?;
    // From here on nothing of the site is needed.
    let (dir, file, key) = (stage.dir.as_path(), file.to_string(), key.as_str());
    let of_it = ["--key", key, "--serial", "LONG"];
    ensure!(verify(dir, &file, &of_it).await? == (0, String::new()), "the certificate is refused");
    let (code, why) = verify(dir, &file, &["--key", key, "--serial", "OTHER"]).await?;
    ensure!(code == 2 && why.contains("another-disk"), "{code}: {why}");
    let digits = if key.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{digits}", &key[..key.len() - 1]);
    let (code, why) = verify(dir, &file, &["--key", &wrong]).await?;
    ensure!(code == 2 && why.contains("wrong-key"), "{code}: {why}");
    let text = file.replacen("LONG", "LANG", 1);
    let (code, why) = verify(dir, &text, &["--key", key]).await?;
    ensure!(code == 2 && why.contains("tampered"), "{code}: {why}");
    Ok(())
}
