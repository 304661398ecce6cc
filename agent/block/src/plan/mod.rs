//! What is to happen to each disk of a node. Pure: all probes in, a plan out, before the first byte of any disk.

mod estimate;
mod policy;

pub use estimate::estimate;
pub use policy::{EraseRequest, Policy};

use crate::disk::Disk;
use crate::guard::{Reason, Refusal, judge};
use crate::holders::{self, TeardownStep};
use crate::method::{Level, Method, methods};
use crate::probe::Probe;
use std::collections::BTreeSet;
use std::time::Duration;

/// What is to happen, disk by disk, in the order of the probes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// One for each disk.
    pub decisions: Vec<DiskDecision>,
    /// What is taken down before the first byte of any disk is written, in this order.
    pub take_down: Vec<TeardownStep>,
    /// Whether the disks to be erased first give back the sectors that they hide.
    pub reveals: bool,
}

/// What is to happen to a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskDecision {
    /// It is erased, by the first of these that works. Never empty.
    Erase(Vec<PlannedMethod>),
    /// It is left alone: it holds no data of the node, or the policy allows the reason.
    Leave(String),
    /// It must not or cannot be erased as wanted: nothing is written to any disk.
    Refuse(String),
}

/// One way to erase one disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedMethod {
    /// How.
    pub method: Method,
    /// What that reaches.
    pub level: Level,
    /// How long it takes, without the reading back.
    pub estimate: Duration,
    /// Why it is there, in a few words.
    pub reason: String,
}

impl Plan {
    /// Whether any disk refuses the whole run.
    pub fn refuses(&self) -> bool {
        self.decisions.iter().any(|decision| matches!(decision, DiskDecision::Refuse(_)))
    }

    /// How long the longest disk takes when its first way works.
    pub fn estimate(&self) -> Duration {
        let first = |decision: &DiskDecision| match decision {
            DiskDecision::Erase(methods) => methods.first().map(|planned| planned.estimate),
            DiskDecision::Leave(_) | DiskDecision::Refuse(_) => None,
        };
        self.decisions.iter().filter_map(first).max().unwrap_or_default()
    }
}

/// Plan the erase of all disks of a node.
pub fn plan(probes: &[Probe], request: &EraseRequest) -> Plan {
    judged(probes, &request.policy, |probe| decide(probe, request))
}

/// Plan the removal of metadata alone: the same guards, and no way is needed.
pub fn plan_metadata(probes: &[Probe], policy: &Policy) -> Plan {
    judged(probes, policy, |_| DiskDecision::Erase(Vec::new()))
}

/// What the guards say of each disk, and `erase` of those that may be written once nothing uses them.
fn judged(probes: &[Probe], policy: &Policy, erase: impl Fn(&Probe) -> DiskDecision) -> Plan {
    let may = policy.take_down && !policy.leave.contains(&Reason::InUse);
    let idle = |refusal: &Refusal| !(may && refusal.reason() == Reason::InUse);
    let wanted: Vec<bool> =
        probes.iter().map(|probe| keep_off(probe, policy, idle, None).is_none()).collect();
    let disks: Vec<&Disk> = probes.iter().map(|probe| &probe.disk).collect();
    // What a disk is erased through stays.
    let maps = probes.iter().filter_map(|probe| Some(probe.map.as_ref()?.name.as_str())).collect();
    let (take_down, obstacles) =
        if may { holders::plan(&disks, &wanted, &maps) } else { (Vec::new(), vec![None; disks.len()]) };
    let decision = |((probe, wanted), obstacle): ((&Probe, bool), Option<String>)| match obstacle {
        None if wanted => erase(probe),
        obstacle => keep_off(probe, policy, |_| true, obstacle).unwrap_or_else(|| erase(probe)),
    };
    let decisions = probes.iter().zip(wanted).zip(obstacles).map(decision).collect();
    Plan { decisions, take_down, reveals: policy.reveal }
}

/// Whether, and why, a disk is not written at all, for reasons that `counts` and for what keeps its users from being
/// taken down.
///
/// What is not storage of the node, or named by the operator, is left alone whatever else is said of it. Otherwise
/// every reason must be allowed.
fn keep_off(
    probe: &Probe,
    policy: &Policy,
    counts: impl Fn(&Refusal) -> bool,
    obstacle: Option<String>,
) -> Option<DiskDecision> {
    if let Some(hint) = policy.skip.iter().find(|hint| probe.is_meant_by(hint)) {
        return Some(DiskDecision::Leave(format!("the operator keeps it: it matches {hint}")));
    }
    let refusals: Vec<Refusal> = judge(probe)
        .into_iter()
        .filter(|refusal| counts(refusal) && !policy.despite.contains(&refusal.reason()))
        .filter(|refusal| !(policy.reveal && matches!(refusal, Refusal::HiddenArea { .. })))
        .collect();
    if let Some(medium) = refusals.iter().find(|refusal| refusal.is_boot_medium()) {
        return Some(DiskDecision::Leave(medium.to_string()));
    }
    let words = refusals.iter().map(Refusal::to_string).chain(obstacle).collect::<Vec<_>>().join("; ");
    if refusals.is_empty() {
        return (!words.is_empty()).then_some(DiskDecision::Refuse(words));
    }
    if refusals.iter().all(|refusal| policy.leave.contains(&refusal.reason())) {
        let names: Vec<&str> = policy.leave.iter().map(|reason| reason.as_str()).collect();
        return Some(DiskDecision::Leave(format!(
            "{words}, and the policy leaves such disks alone ({})",
            names.join(", ")
        )));
    }
    Some(DiskDecision::Refuse(words))
}

/// The methods that reach the level, or that are allowed by name, and keep within the time.
fn decide(probe: &Probe, request: &EraseRequest) -> DiskDecision {
    let rotational = probe.disk.rotational;
    let (mut methods, mut left_out) = (Vec::new(), Vec::new());
    for method in wanted(probe, request) {
        let (level, estimate) = (method.level(rotational), estimate(probe, method));
        let enough = level >= request.level;
        let named = |set: &BTreeSet<Method>| set.iter().any(|other| other.as_str() == method.as_str());
        if named(&request.policy.never) {
            left_out.push(format!("{} is switched off", method.as_str()));
        } else if !enough && !named(&request.policy.weaker) {
            left_out.push(format!("{} only reaches {}", method.as_str(), level.as_str()));
        } else if request.budget.is_some_and(|budget| estimate > budget) {
            left_out.push(format!("{} takes about {} s", method.as_str(), estimate.as_secs()));
        } else {
            let reason = match method {
                Method::OverwriteWith(passes) => format!("wanted: {} passes", passes.count),
                _ if enough => "the drive supports it".to_owned(),
                _ => "allowed by name, below the level".to_owned(),
            };
            methods.push(PlannedMethod { method, level, estimate, reason });
        }
    }
    if !methods.is_empty() {
        // What reaches the level comes before what was only allowed; the order is otherwise kept.
        methods.sort_by_key(|planned| planned.level < request.level);
        if request.policy.insist {
            let mut tried = false;
            methods.retain(|planned| {
                tried |= planned.method.is_secure_erase();
                !tried || planned.method.is_secure_erase()
            });
        }
        return DiskDecision::Erase(methods);
    }
    let level = request.level.as_str();
    let budget = request.budget.map_or_else(String::new, |budget| format!(" within {} s", budget.as_secs()));
    let left_out =
        if left_out.is_empty() { "it has no method at all".to_owned() } else { left_out.join(", ") };
    let state = hindrance(probe).map_or_else(String::new, |why| format!("; {why}"));
    DiskDecision::Refuse(format!("no method of it reaches {level}{budget}: {left_out}{state}"))
}

/// What the disk supports, with the wanted content in place of zeroes.
fn wanted(probe: &Probe, request: &EraseRequest) -> Vec<Method> {
    let found = methods(probe).into_iter();
    let Some(passes) = request.overwrite else { return found.collect() };
    let other = |method| match method {
        Method::ZeroOut | Method::Discard => None,
        Method::Overwrite => Some(Method::OverwriteWith(passes)),
        method => Some(method),
    };
    found.filter_map(other).collect()
}

/// What keeps a drive from more, and what to do about it.
fn hindrance(probe: &Probe) -> Option<&'static str> {
    let ata = probe.ata?;
    let frozen = ata.security.frozen || ata.sanitize.state == Some(crate::sanitize::State::Frozen);
    frozen.then_some(
        "the drive is frozen, as firmware does at boot: power the node off and on, or hot-plug the drive",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any::any_node;
    use crate::probe::Layer;
    use proptest::prelude::*;

    fn request() -> impl Strategy<Value = EraseRequest> {
        let methods = || prop::collection::btree_set(prop::sample::select(Method::ALL.to_vec()), 0..3);
        let reasons = || prop::collection::btree_set(prop::sample::select(Reason::ALL.to_vec()), 0..3);
        let budget = prop::option::of((0u64..1_000_000).prop_map(Duration::from_secs));
        (
            prop::sample::select(Level::ALL.to_vec()),
            (methods(), methods()),
            reasons(),
            reasons(),
            budget,
            any::<[bool; 3]>(),
        )
            .prop_map(
                |(level, (weaker, never), leave, despite, budget, [take_down, reveal, insist])| {
                    let despite = despite.into_iter().filter(|reason| reason.may_be_overridden()).collect();
                    EraseRequest {
                        level,
                        budget,
                        overwrite: None,
                        policy: Policy {
                            weaker,
                            never,
                            leave,
                            despite,
                            take_down,
                            reveal,
                            insist,
                            skip: Vec::new(),
                        },
                    }
                },
            )
    }

    /// Kernel name of what a step takes down.
    fn names(step: &TeardownStep) -> &str {
        match step {
            TeardownStep::SwapOff { what }
            | TeardownStep::Unmount { what, .. }
            | TeardownStep::StopArray { what, .. }
            | TeardownStep::Remove { what, .. }
            | TeardownStep::StopBcache { what } => what,
        }
    }

    /// Whether the request allows the method on a disk that nothing else speaks against.
    fn method_fits(probe: &Probe, method: Method, request: &EraseRequest) -> bool {
        let enough =
            method.level(probe.disk.rotational) >= request.level || request.policy.weaker.contains(&method);
        let in_time = request.budget.is_none_or(|budget| estimate(probe, method) <= budget);
        enough && in_time && !request.policy.never.contains(&method)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn nothing_unsupported_nothing_weaker_nothing_refused(
            probes in any_node(), request in request(),
        ) {
            let reveal = |r: &Refusal| request.policy.reveal && matches!(r, Refusal::HiddenArea { .. });
            let may = request.policy.take_down && !request.policy.leave.contains(&Reason::InUse);
            let plan = plan(&probes, &request);
            prop_assert_eq!(plan.decisions.len(), probes.len());
            for (probe, decision) in probes.iter().zip(&plan.decisions) {
                let refusals: Vec<Refusal> = judge(probe);
                let open = refusals.iter().filter(|r| !request.policy.despite.contains(&r.reason()) && !reveal(r));
                match decision {
                    DiskDecision::Erase(planned_methods) => {
                        let open: Vec<_> = open.collect();
                        let down = may && open.iter().all(|r| r.reason() == Reason::InUse);
                        prop_assert!(!planned_methods.is_empty() && (open.is_empty() || down));
                        prop_assert!(open.is_empty() || !plan.take_down.is_empty());
                        for planned in planned_methods {
                            prop_assert!(methods(probe).contains(&planned.method));
                            prop_assert_eq!(planned.level, planned.method.level(probe.disk.rotational));
                            prop_assert!(planned.level >= request.level || request.policy.weaker.contains(&planned.method));
                            prop_assert!(!request.policy.never.contains(&planned.method));
                            prop_assert!(request.budget.is_none_or(|budget| planned.estimate <= budget));
                            prop_assert!(planned.method != Method::Discard || planned.level == Level::Clear);
                        }
                        let enough: Vec<bool> = planned_methods.iter().map(|planned| planned.level >= request.level).collect();
                        prop_assert!(enough.is_sorted_by(|a, b| a >= b), "what reaches the level comes first");
                        let own: Vec<bool> = planned_methods.iter().map(|planned| planned.method.is_secure_erase()).collect();
                        prop_assert!(!request.policy.insist || own.is_sorted(), "nothing in the place of a secure erase");
                    }
                    DiskDecision::Leave(_) => {
                        let open: Vec<_> = open.collect();
                        prop_assert!(open.iter().any(|r| r.is_boot_medium())
                            || open.iter().all(|r| request.policy.leave.contains(&r.reason())));
                        prop_assert!(!open.is_empty());
                    }
                    DiskDecision::Refuse(_) => {
                        prop_assert!(plan.refuses());
                        let fits = methods(probe).into_iter().any(|method| method_fits(probe, method, &request));
                        prop_assert!(open.count() > 0 || !fits, "nothing speaks against erasing it");
                    }
                }
            }
            // Nothing that is on a disk which stays is taken down.
            let goes: BTreeSet<&str> = plan.take_down.iter().map(names).collect();
            for (probe, _) in probes.iter().zip(&plan.decisions).filter(|(_, decision)| matches!(decision, DiskDecision::Leave(_))) {
                let disk = &probe.disk;
                let holders = disk.all_holders().into_iter().map(|holder| holder.name.clone());
                let mounts = disk.all_mounts().into_iter().map(|(what, _)| what);
                let stays: BTreeSet<String> = holders.chain(mounts).chain(disk.all_swap()).collect();
                prop_assert!(stays.iter().all(|name| !goes.contains(name.as_str())), "{stays:?} of {goes:?}");
            }
            prop_assert!(may || plan.take_down.is_empty());
        }
    }

    #[test]
    fn a_shared_disk_refuses_the_run_whatever_the_case_of_its_guid() {
        for kind in
            ["aa31e02a-400f-11db-9590-000c2911d1b8", "AA31E02A-400F-11DB-9590-000C2911D1B8", "0xfb", "0xFB"]
        {
            let kind = kind.to_owned();
            let partition_types = vec![crate::signature::PartitionType { start: 1 << 20, kind }];
            let shared = Probe { partition_types, ..Probe::default() };
            let request = EraseRequest::default();
            let made = plan(&[Probe::default(), shared.clone()], &request);
            assert!(made.refuses() && matches!(made.decisions[0], DiskDecision::Erase(_)), "{made:?}");
            let despite = BTreeSet::from([Reason::Shared]);
            let allowed = EraseRequest { policy: Policy { despite, ..Policy::default() }, ..request };
            assert!(!plan(&[shared], &allowed).refuses());
        }
    }

    #[test]
    fn what_is_on_a_volume_above_keeps_the_disk_and_the_volume_up() {
        let held = |layer: Layer| {
            let array = crate::disk::Holder {
                name: "md127".into(),
                kind: crate::disk::HolderKind::Md("raid1".into()),
                ..Default::default()
            };
            let disk = Disk { name: "sda".into(), holders: vec![array], ..Disk::default() };
            Probe { disk, above: vec![layer], ..Probe::default() }
        };
        let policy = Policy { take_down: true, ..Policy::default() };
        let plan = |probe: Probe, policy: &Policy| plan_metadata(&[probe], policy);
        let taken_down = plan(held(Layer::default()), &policy);
        assert!(!taken_down.refuses() && taken_down.take_down.len() == 1);
        let vmfs = crate::signature::PartitionType { start: 0, kind: "0xfb".into() };
        let shared = Layer { what: "md array md127".into(), partition_types: vec![vmfs], ..Layer::default() };
        let refused = plan(held(shared), &policy);
        assert!(refused.refuses() && refused.take_down.is_empty(), "{refused:?}");
        let DiskDecision::Refuse(reason) = &refused.decisions[0] else { panic!("{refused:?}") };
        assert!(reason.contains("a VMFS partition on md array md127"), "{reason}");
        let left = plan(
            held(Layer::default()),
            &Policy { leave: BTreeSet::from([Reason::InUse]), ..policy.clone() },
        );
        assert!(matches!(left.decisions[0], DiskDecision::Leave(_)) && left.take_down.is_empty(), "{left:?}");
        assert!(plan(held(Layer::default()), &Policy::default()).refuses(), "outside the ramdisk");
    }

    #[test]
    fn wanted_content_takes_the_place_of_zeroes_and_not_of_the_drives_own_methods() {
        use crate::method::{Fill, Passes};
        let mut probe = Probe { ata: Some(crate::ata::Capabilities::default()), ..Probe::default() };
        (probe.disk.write_zeroes_max, probe.disk.discard_max, probe.disk.discard_reads_zero) = (1, 1, true);
        if let Some(ata) = &mut probe.ata {
            ata.security.supported = true;
        }
        let count = std::num::NonZeroU8::new(3).unwrap();
        let passes = Passes { count, last: Fill::Random };
        let mut request = EraseRequest { overwrite: Some(passes), ..EraseRequest::default() };
        let methods = |request: &EraseRequest| match plan(&[probe.clone()], request).decisions.remove(0) {
            DiskDecision::Erase(methods) => {
                methods.into_iter().map(|planned| planned.method).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(methods(&request), [Method::AtaErase, Method::OverwriteWith(passes)]);
        request.policy.never = BTreeSet::from([Method::of("overwrite-random").unwrap()]);
        assert_eq!(methods(&request), [Method::AtaErase], "a name is a name, whatever the passes");
    }

    #[test]
    fn who_insists_on_a_drives_own_erase_has_nothing_written_in_its_place() {
        let mut probe = Probe { ata: Some(crate::ata::Capabilities::default()), ..Probe::default() };
        if let Some(ata) = &mut probe.ata {
            (ata.security.supported, ata.security.enhanced) = (true, true);
        }
        let methods = |probe: &Probe, insist| {
            let policy = Policy { insist, ..Policy::default() };
            match plan(std::slice::from_ref(probe), &EraseRequest { policy, ..EraseRequest::default() })
                .decisions
                .remove(0)
            {
                DiskDecision::Erase(methods) => {
                    methods.into_iter().map(|planned| planned.method).collect::<Vec<_>>()
                }
                other => panic!("{other:?}"),
            }
        };
        let own = [Method::AtaEnhancedErase, Method::AtaErase];
        assert_eq!(methods(&probe, false), [own[0], own[1], Method::Overwrite]);
        assert_eq!(methods(&probe, true), own);
        probe.disk.rotational = true;
        let all = [Method::Overwrite, own[0], own[1]];
        assert_eq!(
            (methods(&probe, false), methods(&probe, true)),
            (all.to_vec(), all.to_vec()),
            "it comes first here"
        );
        probe.ata = None;
        assert_eq!(methods(&probe, true), [Method::Overwrite], "a drive that has none is written over");
    }

    #[test]
    fn what_cannot_reach_the_level_says_what_it_has() {
        let request = EraseRequest { level: Level::Purge, ..EraseRequest::default() };
        let mut probe = Probe { ata: Some(crate::ata::Capabilities::default()), ..Probe::default() };
        if let Some(ata) = &mut probe.ata {
            ata.security.frozen = true;
        }
        let DiskDecision::Refuse(reason) = plan(&[probe], &request).decisions.remove(0) else {
            panic!("not refused")
        };
        assert!(
            reason.contains("overwrite-zeroes only reaches clear") && reason.contains("power the node off")
        );
    }

    #[test]
    fn a_plan_takes_as_long_as_its_slowest_disk_and_a_budget_may_be_used_up() {
        let sized = |size| Probe { disk: Disk { size, ..Disk::default() }, ..Probe::default() };
        let probes = [sized(40_000_000_000), sized(400_000_000_000), sized(4_000_000_000)];
        let slowest = estimate(&probes[1], Method::Overwrite);
        assert!(slowest > estimate(&probes[0], Method::Overwrite));
        let within =
            |budget| plan(&probes, &EraseRequest { budget: Some(budget), ..EraseRequest::default() });
        let made = within(slowest);
        assert_eq!((made.refuses(), made.estimate()), (false, slowest));
        let refused = within(slowest - Duration::from_secs(1));
        let kinds = refused.decisions.iter().map(|decision| matches!(decision, DiskDecision::Refuse(_)));
        assert_eq!(kinds.collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(plan(&[], &EraseRequest::default()).estimate(), Duration::ZERO);
    }

    #[test]
    fn each_method_says_why_it_is_there() {
        use crate::method::{Fill, Passes};
        let reason = |request: &EraseRequest| match plan(&[Probe::default()], request).decisions.remove(0) {
            DiskDecision::Erase(methods) => methods[0].reason.clone(),
            other => panic!("{other:?}"),
        };
        let mut request = EraseRequest::default();
        assert_eq!(reason(&request), "the drive supports it");
        let count = std::num::NonZeroU8::new(3).unwrap();
        request.overwrite = Some(Passes { count, last: Fill::Random });
        assert_eq!(reason(&request), "wanted: 3 passes");
        let weaker = BTreeSet::from([Method::Overwrite]);
        let policy = Policy { weaker, ..Policy::default() };
        let request = EraseRequest { level: Level::Purge, policy, ..EraseRequest::default() };
        assert_eq!(reason(&request), "allowed by name, below the level");
    }

    #[test]
    fn a_frozen_drive_is_named_as_such_and_no_other() {
        let words = |state, frozen| {
            let mut ata = crate::ata::Capabilities::default();
            (ata.sanitize.state, ata.security.frozen) = (state, frozen);
            let request = EraseRequest { level: Level::Purge, ..EraseRequest::default() };
            let probe = Probe { ata: Some(ata), ..Probe::default() };
            match plan(&[probe], &request).decisions.remove(0) {
                DiskDecision::Refuse(reason) => reason,
                other => panic!("{other:?}"),
            }
        };
        use crate::sanitize::State;
        for (state, frozen, named) in [
            (None, false, false),
            (Some(State::Idle), false, false),
            (Some(State::Frozen), false, true),
            (Some(State::Idle), true, true),
        ] {
            assert_eq!(words(state, frozen).contains("the drive is frozen"), named, "{state:?} {frozen}");
        }
    }
}
