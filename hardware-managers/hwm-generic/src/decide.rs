//! Which disks are erased. Pure.

use crate::settings::Settings;
use crate::survey::{Surveyed, Verdict};
use block::Refusal;

/// What is to happen, disk by disk, in the order of the survey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// One per disk.
    pub fates: Vec<Fate>,
}

/// What is to happen to a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is erased.
    Erase,
    /// It is left alone, which leaves no data of the node behind, or was asked for.
    Skip(String),
    /// It must not be touched although it may hold data of the node: the step stops.
    Stop(String),
}

impl Decision {
    /// Whether anything is written at all.
    pub fn stops(&self) -> bool {
        self.fates.iter().any(|fate| matches!(fate, Fate::Stop(_)))
    }
}

/// Decide from the judgement of all disks.
///
/// Boot and virtual media are skipped. A disk that is read-only and nothing else is skipped when the settings
/// ask for it. Any other refusal, and a disk that cannot be read, stops the step.
pub fn decide(surveyed: &[Surveyed], settings: &Settings) -> Decision {
    let fates = surveyed.iter().map(|disk| fate(&disk.verdict, settings)).collect();
    Decision { fates }
}

fn fate(verdict: &Verdict, settings: &Settings) -> Fate {
    match verdict {
        Verdict::Writable(_) => Fate::Erase,
        Verdict::Unknown(error) => Fate::Stop(error.clone()),
        Verdict::Refused(refusals) => {
            let read_only = refusals.iter().all(|refusal| *refusal == Refusal::ReadOnly);
            let medium = refusals.iter().find(|refusal| refusal.is_boot_medium());
            let words = || refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("; ");
            match medium {
                Some(medium) => Fate::Skip(medium.to_string()),
                None if read_only && settings.skip_read_only => {
                    Fate::Skip("it is read-only, and agent_erase_skip_read_only is set".to_owned())
                }
                None => Fate::Stop(words()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Disk, Probe};
    use proptest::prelude::*;

    fn refusal() -> impl Strategy<Value = Refusal> {
        prop_oneof![
            Just(Refusal::ReadOnly),
            Just(Refusal::Swap { what: "sda2".into() }),
            Just(Refusal::Held { by: "md array md0 (raid1)".into() }),
            Just(Refusal::Mounted { what: "sda1".into(), at: "/".into() }),
            Just(Refusal::VirtualMedia { because: "labelled ir-vfd-dev".into() }),
        ]
    }

    fn verdict() -> impl Strategy<Value = Verdict> {
        prop_oneof![
            Just(Verdict::Writable(Box::default())),
            prop::collection::vec(refusal(), 1..4).prop_map(Verdict::Refused),
            Just(Verdict::Unknown("cannot open".into())),
        ]
    }

    proptest! {
        #[test]
        fn a_disk_is_erased_only_when_writable_and_left_only_for_a_harmless_reason(
            verdicts in prop::collection::vec(verdict(), 0..6), skip_read_only: bool,
        ) {
            let settings = Settings { skip_read_only, ..Settings::default() };
            let surveyed: Vec<Surveyed> =
                verdicts.into_iter().map(|verdict| Surveyed { disk: Disk::default(), verdict }).collect();
            let decision = decide(&surveyed, &settings);
            prop_assert_eq!(decision.fates.len(), surveyed.len());
            for (disk, fate) in surveyed.iter().zip(&decision.fates) {
                match (&disk.verdict, fate) {
                    (Verdict::Writable(_), fate) => prop_assert_eq!(fate, &Fate::Erase),
                    (Verdict::Unknown(_), fate) => prop_assert!(matches!(fate, Fate::Stop(_))),
                    (Verdict::Refused(refusals), Fate::Skip(_)) => prop_assert!(
                        refusals.iter().any(Refusal::is_boot_medium)
                            || skip_read_only && refusals.iter().all(|r| *r == Refusal::ReadOnly)
                    ),
                    (Verdict::Refused(_), fate) => prop_assert!(matches!(fate, Fate::Stop(_))),
                }
            }
        }
    }

    #[test]
    fn the_reasons_are_the_refusals_words() {
        let refused = Verdict::Refused(vec![
            Refusal::Mounted { what: "sda1".into(), at: "/srv".into() },
            Refusal::ReadOnly,
        ]);
        let surveyed = [
            Surveyed { disk: Disk::default(), verdict: refused },
            Surveyed { disk: Disk::default(), verdict: Verdict::Writable(Box::<Probe>::default()) },
        ];
        let decision = decide(&surveyed, &Settings { skip_read_only: true, ..Settings::default() });
        assert!(decision.stops());
        assert_eq!(decision.fates[0], Fate::Stop("sda1 is mounted at /srv; it is read-only".into()));
        assert_eq!(decision.fates[1], Fate::Erase);
    }
}
