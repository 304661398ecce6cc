//! Listing disks from sysfs trees as kernels show them.

use block::{Disk, Filter, HolderKind, ListError, Roots, list};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A sysfs, procfs and /dev in a temporary directory.
struct Tree {
    root: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let tree = Tree { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(tree.at("sys/block")).unwrap();
        fs::create_dir_all(tree.at("dev")).unwrap();
        tree.put("proc/self/mountinfo", "");
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A disk at a device path, with the attributes that every block device has.
    fn disk(&self, device: &str, name: &str, dev: &str, sectors: u64) -> String {
        let dir = format!("sys/devices/{device}/block/{name}");
        self.put(&format!("{dir}/dev"), format!("{dev}\n"));
        self.put(&format!("{dir}/size"), format!("{sectors}\n"));
        self.put(&format!("{dir}/ro"), "0\n");
        self.put(&format!("{dir}/removable"), "0\n");
        self.put(&format!("{dir}/queue/logical_block_size"), "512\n");
        self.put(&format!("{dir}/queue/physical_block_size"), "4096\n");
        self.put(&format!("{dir}/queue/rotational"), "1\n");
        fs::create_dir_all(self.at(&format!("{dir}/holders"))).unwrap();
        symlink(self.at(&format!("sys/devices/{device}")), self.at(&format!("{dir}/device"))).unwrap();
        symlink(self.at(&dir), self.at(&format!("sys/block/{name}"))).unwrap();
        dir
    }

    fn partition(&self, disk: &str, name: &str, number: u32, dev: &str, start: u64, sectors: u64) -> String {
        let dir = format!("{disk}/{name}");
        self.put(&format!("{dir}/partition"), format!("{number}\n"));
        self.put(&format!("{dir}/dev"), format!("{dev}\n"));
        self.put(&format!("{dir}/start"), format!("{start}\n"));
        self.put(&format!("{dir}/size"), format!("{sectors}\n"));
        fs::create_dir_all(self.at(&format!("{dir}/holders"))).unwrap();
        dir
    }

    fn holds(&self, holder: &str, held: &str) {
        let (name, target) = (Path::new(holder).file_name().unwrap(), self.at(holder));
        symlink(target, self.at(held).join("holders").join(name)).unwrap();
    }

    fn roots(&self) -> Roots {
        Roots { sys: self.at("sys"), proc: self.at("proc"), dev: self.at("dev") }
    }

    fn list(&self) -> Result<Vec<Disk>, ListError> {
        list(&self.roots(), &Filter::All)
    }
}

const SATA: &str = "pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0";
const NVME: &str = "pci0000:00/0000:00:04.0/nvme/nvme0";

#[test]
fn identities_of_a_server() {
    let tree = Tree::new();
    let sda = tree.disk(SATA, "sda", "8:0", 2048);
    let device = format!("sys/devices/{SATA}");
    tree.put(&format!("{device}/vendor"), "ATA     ");
    tree.put(&format!("{device}/model"), "QEMU HARDDISK   ");
    tree.put(&format!("{device}/vpd_pg80"), b"\x00\x80\x00\x07QM00001");
    tree.put(&format!("{device}/wwid"), "naa.5000c50015ea71ac\n");
    tree.put(&format!("{sda}/queue/write_zeroes_max_bytes"), "1024\n");
    let nvme = tree.disk(NVME, "nvme0n1", "259:0", 4096);
    tree.put(&format!("sys/devices/{NVME}/model"), "QEMU NVMe Ctrl                          ");
    tree.put(&format!("sys/devices/{NVME}/serial"), "NV01                ");
    tree.put(&format!("{nvme}/wwid"), "nvme.1b36-4e563031-51454d55-00000001\n");
    tree.put(&format!("{nvme}/nsid"), "1\n");
    tree.put(&format!("{nvme}/queue/rotational"), "0\n");
    let vda = tree.disk("pci0000:00/0000:00:05.0/virtio2", "vda", "254:0", 8192);
    tree.put("sys/devices/pci0000:00/0000:00:05.0/virtio2/vendor", "0x1af4\n");
    tree.put(&format!("{vda}/serial"), "VD01");
    tree.put(&format!("{vda}/ro"), "1\n");

    let disks = tree.list().unwrap();
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(names, ["nvme0n1", "sda", "vda"]);
    let [nvme, sda, vda] = &disks[..] else { panic!("three disks") };
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    assert_eq!(
        [text(&sda.serial), text(&sda.wwn), text(&sda.model), text(&sda.vendor), text(&sda.hctl)],
        ["QM00001", "0x5000c50015ea71ac", "QEMU HARDDISK", "ATA", "0:0:0:0"]
    );
    assert_eq!((text(&sda.transport), sda.size, sda.write_zeroes_max), ("sata".into(), 1 << 20, 1024));
    assert_eq!((sda.logical_block, sda.physical_block, sda.rotational), (512, 4096, true));
    assert_eq!(
        [text(&nvme.serial), text(&nvme.wwn), text(&nvme.model), text(&nvme.transport)],
        ["NV01", "nvme.1b36-4e563031-51454d55-00000001", "QEMU NVMe Ctrl", "nvme"]
    );
    assert_eq!((nvme.namespace, nvme.rotational, nvme.hctl.clone()), (Some(1), false, None));
    assert_eq!([text(&vda.serial), text(&vda.vendor), text(&vda.transport)], ["VD01", "", "virtio"]);
    assert!(vda.read_only && !sda.read_only);
}

/// By the path of the device, as Linux 6.1 names it.
#[test]
fn how_a_disk_is_attached() {
    let tree = Tree::new();
    let attached = [
        ("sda", "pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0/host6/target6:0:0/6:0:0:0", "usb"),
        ("sdb", "pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0", "sata"),
        ("sdc", "pci0000:00/0000:00:07.0/host1/port-1:0/end_device-1:0/target1:0:0/1:0:0:0", "sas"),
        ("sdd", "pci0000:00/0000:00:08.0/host2/rport-2:0-0/target2:0:0/2:0:0:0", "fc"),
        ("sde", "platform/host3/session1/target3:0:0/3:0:0:0", "iscsi"),
        ("sdf", "pci0000:00/0000:00:06.0/virtio3/host4/target4:0:0/4:0:0:0", "scsi"),
    ];
    for (number, (name, path, _)) in attached.iter().enumerate() {
        tree.disk(path, name, &format!("8:{}", number * 16), 2048);
    }
    let disks = tree.list().unwrap();
    let found: Vec<_> = disks.iter().map(|disk| (disk.name.as_str(), disk.transport.as_deref())).collect();
    let expected: Vec<_> = attached.iter().map(|(name, _, transport)| (*name, Some(*transport))).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_is_no_disk_is_left_out_and_order_is_natural() {
    let tree = Tree::new();
    for (index, name) in [
        "sdaa",
        "sdb",
        "nvme10n1",
        "nvme2n1",
        "ram0",
        "zram0",
        "fd0",
        "sr0",
        "dm-0",
        "md127",
        "loop0",
        "mmcblk0",
        "mmcblk0boot0",
        "nvme0c0n1",
        "sdz",
    ]
    .iter()
    .enumerate()
    {
        let sectors = if *name == "sdz" { 0 } else { 64 };
        let dir = tree.disk(&format!("virtual/{name}"), name, &format!("8:{index}"), sectors);
        if *name == "mmcblk0" {
            tree.put(&format!("{dir}/device/type"), "MMC\n");
        }
        if *name == "nvme0c0n1" {
            tree.put(&format!("{dir}/hidden"), "1\n");
        }
    }
    let found = tree.list().unwrap();
    assert_eq!(found.iter().map(|disk| disk.emmc).collect::<Vec<_>>(), [true, false, false, false, false]);
    let names: Vec<String> = found.into_iter().map(|disk| disk.name).collect();
    assert_eq!(names, ["mmcblk0", "nvme2n1", "nvme10n1", "sdb", "sdaa"]);
}

#[test]
fn partitions_holders_and_mounts_down_the_stack() {
    let tree = Tree::new();
    let sda = tree.disk(SATA, "sda", "8:0", 1 << 20);
    let sda2 = tree.partition(&sda, "sda2", 2, "8:2", 4096, 8192);
    tree.partition(&sda, "sda1", 1, "8:1", 2048, 2048);
    let md = tree.disk("virtual/md127", "md127", "9:127", 8000);
    tree.put(&format!("{md}/md/level"), "raid1\n");
    let dm = tree.disk("virtual/dm-0", "dm-0", "253:0", 8000);
    tree.put(&format!("{dm}/dm/name"), "vg0-root\n");
    tree.put(&format!("{dm}/dm/uuid"), "LVM-abc\n");
    tree.holds(&md, &sda2);
    tree.holds(&dm, &md);
    let dev = tree.at("dev");
    tree.put(
        "proc/self/mountinfo",
        format!(
            "30 1 253:0 / /srv rw - ext4 /dev/mapper/vg0-root rw\n31 1 0:40 / /x rw - btrfs {}/sda1 rw\n",
            dev.display()
        ),
    );
    tree.put("proc/swaps", format!("Filename\tType\n{}/sda1\tpartition\t1\t0\t-2\n", dev.display()));

    let disk = tree.list().unwrap().remove(0);
    let numbers: Vec<u32> = disk.partitions.iter().map(|partition| partition.number).collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!((disk.partitions[1].start, disk.partitions[1].size), (4096 * 512, 8192 * 512));
    let array = &disk.partitions[1].holders[0];
    assert_eq!(array.kind, HolderKind::Md("raid1".into()));
    assert_eq!(array.holders[0].kind, HolderKind::Lvm("vg0-root".into()));
    assert_eq!(disk.all_mounts(), [("sda1".into(), "/x".into()), ("dm-0".into(), PathBuf::from("/srv"))]);
    assert_eq!(disk.all_swap(), ["sda1"]);
}

#[test]
fn holders_name_what_they_are_and_all_that_they_are_built_on() {
    let tree = Tree::new();
    let sda = tree.disk(SATA, "sda", "8:0", 1 << 20);
    let sda1 = tree.partition(&sda, "sda1", 1, "8:1", 2048, 2048);
    let container = tree.disk("virtual/md127", "md127", "9:127", 0);
    tree.put(&format!("{container}/md/level"), "container\n");
    let array = tree.disk("virtual/md126", "md126", "9:126", 8000);
    tree.put(&format!("{array}/md/array_state"), "inactive\n");
    tree.put(&format!("{array}/md/metadata_version"), "external:/md127/0\n");
    let part = tree.partition(&array, "md126p1", 1, "259:0", 8, 80);
    tree.put("sys/class/block/md126p1/dev", "259:0\n");
    let map = tree.disk("virtual/dm-0", "dm-0", "253:0", 80);
    tree.put(&format!("{map}/dm/name"), "mpatha\n");
    tree.put(&format!("{map}/dm/uuid"), "mpath-3600\n");
    tree.put(&format!("{map}/dm/suspended"), "1\n");
    for (upper, lower) in [(&container, &sda1), (&array, &sda1), (&map, &part)] {
        tree.holds(upper, lower);
        let slave = Path::new(lower).file_name().unwrap();
        fs::create_dir_all(tree.at(&format!("{upper}/slaves"))).unwrap();
        symlink(tree.at(lower), tree.at(&format!("{upper}/slaves")).join(slave)).unwrap();
    }
    tree.put(
        "proc/swaps",
        format!("Filename\tType\n{}/md126p1\tpartition\t1\t0\t-2\n", tree.at("dev").display()),
    );
    let disk = tree.list().unwrap().remove(0);
    let [array, container] = &disk.partitions[0].holders[..] else { panic!("{disk:?}") };
    assert_eq!(
        (&container.kind, &container.below[..]),
        (&HolderKind::Md("container".into()), &["sda".to_owned()][..])
    );
    assert_eq!(array.kind, HolderKind::Md("inactive".into()));
    assert_eq!(array.below, ["sda", "md127"], "the container is below its arrays");
    let part = &array.holders[0];
    assert_eq!((&part.kind, part.dev, part.swap), (&HolderKind::Partition, (259, 0), true));
    let map = &part.holders[0];
    assert_eq!((&map.kind, map.suspended), (&HolderKind::Multipath("mpatha".into()), true));
    assert_eq!((map.dev, map.size, &map.below[..]), ((253, 0), 80 * 512, &["md126".to_owned()][..]));
    assert_eq!(disk.all_swap(), ["md126p1"]);
}

#[test]
fn two_paths_are_one_disk_only_when_everything_agrees() {
    let tree = Tree::new();
    for (index, (name, serial, wwn)) in [
        ("sda", "S1", "naa.6000c290000000000123456789abcdef"),
        ("sdb", "S1", "naa.6000c290000000000123456789abcdef"),
        ("sdc", "S2", "naa.6000c290000000000123456789abcdef"),
        ("sdd", "S1", "naa.6000c290000000000123456789abcd00"),
        ("sde", "", ""),
        ("sdf", "", ""),
    ]
    .iter()
    .enumerate()
    {
        let device = format!("pci0000:00/host{index}/target{index}:0:0/{index}:0:0:0");
        let dir = tree.disk(&device, name, &format!("8:{}", index * 16), 2048);
        tree.put(&format!("sys/devices/{device}/serial"), serial);
        tree.put(&format!("sys/devices/{device}/wwid"), wwn);
        if *name == "sdb" {
            tree.put(&format!("{dir}/ro"), "1");
        }
    }
    let disks = tree.list().unwrap();
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(names, ["sda", "sdc", "sdd", "sde", "sdf"]);
    assert_eq!(disks[0].other_paths, ["sdb"]);
    assert!(disks[0].read_only, "what holds of one path holds of the disk");
}

#[test]
fn what_uses_a_disk_over_its_second_path_uses_the_disk() {
    const USES: [&str; 6] =
        ["mount", "swap", "holder", "partition mount", "partition swap", "partition holder"];
    for used in USES {
        let tree = Tree::new();
        let mut second = String::new();
        for (index, name) in ["sda", "sdb"].iter().enumerate() {
            let device = format!("pci0000:00/host{index}/target{index}:0:0/{index}:0:0:0");
            let dir = tree.disk(&device, name, &format!("8:{}", index * 16), 1 << 20);
            tree.put(&format!("sys/devices/{device}/serial"), "S1");
            tree.put(&format!("sys/devices/{device}/wwid"), "naa.6000c290000000000123456789abcdef");
            second = dir;
        }
        let part = tree.partition(&second, "sdb1", 1, "8:17", 2048, 2048);
        let (dev, place) = if used.starts_with("partition") { ("8:17", &part) } else { ("8:16", &second) };
        let name = Path::new(place).file_name().unwrap().to_str().unwrap();
        if used.ends_with("mount") {
            tree.put("proc/self/mountinfo", format!("30 1 {dev} / /srv rw - ext4 /dev/{name} rw\n"));
        } else if used.ends_with("swap") {
            let node = tree.at("dev").join(name);
            tree.put("proc/swaps", format!("Filename\tType\n{}\tpartition\t1\t0\t-2\n", node.display()));
        } else {
            let md = tree.disk("virtual/md127", "md127", "9:127", 8000);
            tree.put(&format!("{md}/md/level"), "raid1\n");
            tree.holds(&md, place);
        }
        let disks = tree.list().unwrap();
        let [disk] = &disks[..] else { panic!("{disks:?}") };
        assert_eq!(disk.other_paths, ["sdb"]);
        let refusals = block::judge(&block::Probe { disk: disk.clone(), ..block::Probe::default() });
        let [refusal] = &refusals[..] else { panic!("{used}: {refusals:?}") };
        assert_eq!(refusal.reason(), block::Reason::InUse, "{used}");
    }
}

#[test]
fn an_unreadable_listing_is_an_error_and_not_an_empty_machine() {
    let tree = Tree::new();
    assert_eq!(tree.list().unwrap(), []);
    let sda = tree.disk(SATA, "sda", "8:0", 2048);
    tree.put(&format!("{sda}/size"), "many\n");
    let error = tree.list().unwrap_err().to_string();
    assert!(error.contains("sda/size") && error.contains("many"), "{error}");
    fs::remove_file(tree.at(&sda).join("size")).unwrap();
    assert!(matches!(tree.list().unwrap_err(), ListError::Read { .. }));
    fs::remove_dir_all(tree.at("sys/block")).unwrap();
    assert!(matches!(tree.list().unwrap_err(), ListError::Read { .. }));
}

#[test]
fn only_the_given_devices_exist_and_each_must() {
    let tree = Tree::new();
    tree.disk("virtual/loop7", "loop7", "7:7", 2048);
    tree.disk(SATA, "sda", "8:0", 2048);
    tree.put("dev/loop7", "");
    symlink(tree.at("dev/loop7"), tree.at("dev/alias")).unwrap();
    let only = |name: &str| list(&tree.roots(), &Filter::Only(vec![tree.at("dev").join(name)]));
    assert_eq!(only("loop7").unwrap()[0].name, "loop7");
    assert_eq!(only("alias").unwrap()[0].name, "loop7");
    for wrong in ["loop8", "sda1", "../etc/passwd"] {
        let error = only(wrong).unwrap_err();
        assert!(matches!(&error, ListError::NotADisk(path) if path.ends_with(wrong)), "{error}");
    }
    assert_eq!(list(&tree.roots(), &Filter::Only(vec![])).unwrap(), []);
}
