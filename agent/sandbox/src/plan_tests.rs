use super::*;
use std::slice;

fn host(controllers: &[&str]) -> Host {
    let controllers = controllers.iter().map(|name| (*name).to_owned()).collect();
    Host {
        cgroup: Some(("/sys/fs/cgroup".into(), controllers)),
        root_is_rootfs: false,
        mount_points: Vec::new(),
        user: 1_800_000_000,
    }
}

fn program() -> Program {
    Program {
        name: "vendor".into(),
        root: "/run/x".into(),
        argv: vec!["/bin/x".into()],
        environment: Vec::new(),
    }
}

fn planned(grants: &Grants, host: &Host) -> Result<Plan, String> {
    let entries = [
        Entry { name: "dev".into(), kind: EntryKind::Directory },
        Entry { name: "lib".into(), kind: EntryKind::Link("usr/lib".into()) },
        Entry { name: "usr".into(), kind: EntryKind::Directory },
    ];
    plan(&program(), grants, Path::new("/run/x"), &entries, host).map_err(|error| error.to_string())
}

fn device(name: &str, writable: bool) -> DeviceNode {
    DeviceNode { name: name.into(), kind: NodeKind::Block, major: 8, minor: 0, writable }
}

const ALL: [&str; 3] = ["memory", "pids", "cpu"];

#[test]
fn a_program_gets_the_capabilities_of_its_devices_and_no_others() {
    let of = |device: DeviceNode| {
        let grants = Grants { devices: vec![device], ..Grants::default() };
        planned(&grants, &host(&ALL)).expect("a plan").capabilities
    };
    assert_eq!(planned(&Grants::default(), &host(&ALL)).expect("a plan").capabilities, 0);
    assert_eq!(of(device("sda", false)), 0, "reading needs none");
    assert_eq!(of(device("sda", true)), 1 << CAP_SYS_RAWIO);
    assert_eq!(of(device("nvme0", true)), 1 << CAP_SYS_RAWIO | 1 << CAP_SYS_ADMIN);
}

#[test]
fn what_cannot_be_bounded_is_refused_or_noted() {
    let nvme = Grants { devices: vec![device("nvme0n1", true)], ..Grants::default() };
    assert!(planned(&nvme, &host(&ALL)).is_ok());
    let refusal = planned(&nvme, &host(&["memory"])).expect_err("nothing bounds its processes");
    assert!(refusal.contains("CAP_SYS_ADMIN") && refusal.contains("pids"), "{refusal}");

    let full = planned(&Grants::default(), &host(&ALL)).expect("a plan");
    assert_eq!(full.notes, Vec::<String>::new());
    assert!(!full.limits.iter().any(|(resource, _)| *resource == libc::RLIMIT_DATA));
    let bare = planned(&Grants::default(), &Host { cgroup: None, ..host(&[]) }).expect("a plan");
    assert_eq!(bare.notes.len(), 3);
    assert!(bare.limits.contains(&(libc::RLIMIT_DATA, 128 << 20)), "{:?}", bare.limits);
    assert!(bare.limits.contains(&(libc::RLIMIT_NPROC, 32)));
}

#[test]
fn without_the_grant_there_is_no_network_and_no_sysfs() {
    let net: u64 = libc::CLONE_NEWNET.unsigned_abs().into();
    let has_sysfs = |plan: &Plan| {
        plan.operations
            .iter()
            .any(|op| matches!(op, Op::Mount { kind: Some(kind), .. } if kind.as_c_str() == c"sysfs"))
    };
    let plain = planned(&Grants::default(), &host(&ALL)).expect("a plan");
    assert!(plain.namespaces & net == net && !has_sysfs(&plain));
    let grants = Grants { network: true, sysfs: true, ..Grants::default() };
    let open = planned(&grants, &host(&ALL)).expect("a plan");
    assert!(open.namespaces & net == 0 && has_sysfs(&open));
}

#[test]
fn a_rootfs_is_moved_away_and_any_other_root_is_pivoted() {
    let changes = |host: &Host| {
        let plan = planned(&Grants::default(), host).expect("a plan");
        (plan.operations.contains(&Op::PivotHere), plan.operations.contains(&Op::MoveHere))
    };
    assert_eq!(changes(&host(&ALL)), (true, false));
    assert_eq!(changes(&Host { root_is_rootfs: true, ..host(&ALL) }), (false, true));
}

#[test]
fn the_root_cannot_bring_its_own_devices_nor_a_grant_a_strange_node() {
    let plan = planned(&Grants::default(), &host(&ALL)).expect("a plan");
    let bound = |name: &str| {
        plan.operations
            .iter()
            .any(|op| matches!(op, Op::Mount { source: Some(source), .. } if source.to_str() == Ok(name)))
    };
    assert!(bound("usr") && !bound("dev"));
    for (name, made) in [("../sda", false), ("bsg//0", false), ("null", false), ("bsg/0:0:0:0", true)] {
        let grants = Grants { devices: vec![device(name, true)], ..Grants::default() };
        assert_eq!(planned(&grants, &host(&ALL)).is_ok(), made, "{name}");
    }
    let twice = Grants { devices: vec![device("sda", true), device("sda", false)], ..Grants::default() };
    assert!(planned(&twice, &host(&ALL)).is_err());
}

#[test]
fn strange_programs_are_refused() {
    let refused =
        |program: &Program| plan(program, &Grants::default(), Path::new("/run/x"), &[], &host(&ALL)).is_err();
    assert!(!refused(&program()));
    for name in ["", "../x", "a/b", ".hidden", "a b"] {
        assert!(refused(&Program { name: name.into(), ..program() }), "{name}");
    }
    for argv in [&[] as &[&str], &["bin/x"], &["/bin/x", "a\0b"]] {
        assert!(refused(&Program { argv: argv.iter().map(|word| (*word).into()).collect(), ..program() }));
    }
    for grants in [
        Grants { pids: 0, ..Grants::default() },
        Grants { scratch_mib: 0, ..Grants::default() },
        Grants { memory_mib: 0, ..Grants::default() },
    ] {
        assert!(
            plan(&program(), &grants, Path::new("/run/x"), slice::from_ref(&ENTRY), &host(&ALL)).is_err()
        );
    }
    assert!(plan(&program(), &Grants::default(), Path::new("/"), &[], &host(&ALL)).is_err());
}

const ENTRY: Entry = Entry { name: String::new(), kind: EntryKind::Directory };
