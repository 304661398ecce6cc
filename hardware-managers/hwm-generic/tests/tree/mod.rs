//! A machine's sysfs as files of a temporary directory, from what `trees/record.sh` wrote.

use block::{Filter, Roots};
use hwm_generic::GenericHardwareManager;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

pub struct Tree(tempfile::TempDir);

impl Tree {
    /// One of `trees/`.
    pub fn new(name: &str) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for line in tree.recorded(name).lines() {
            let (mode, rest) = line.split_once(' ').unwrap();
            let (path, content) = rest.split_once(' ').unwrap();
            let path = tree.sys().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if mode == "link" {
                symlink(content, path).unwrap();
                continue;
            }
            let (form, value) = content.split_once(' ').unwrap();
            let bytes = match form {
                "hex" => (0..value.len())
                    .step_by(2)
                    .map(|at| u8::from_str_radix(&value[at..at + 2], 16).unwrap())
                    .collect(),
                _ => format!("{}\n", value.replace("\\n", "\n")).into_bytes(),
            };
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(u32::from_str_radix(mode, 8).unwrap()))
                .unwrap();
        }
        fs::create_dir_all(tree.0.path().join("proc/self")).unwrap();
        fs::write(tree.0.path().join("proc/self/mountinfo"), "").unwrap();
        fs::create_dir_all(tree.sys().join("block")).unwrap();
        tree.write_kernel_log("");
        tree
    }

    pub fn recorded(&self, name: &str) -> String {
        fs::read_to_string(format!("{}/tests/trees/{name}.tree", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    pub fn sys(&self) -> PathBuf {
        self.0.path().join("sys")
    }

    pub fn kernel_log(&self) -> PathBuf {
        self.0.path().join("dev/kmsg")
    }

    /// What `/dev/kmsg` returns after the first record.
    pub fn write_kernel_log(&self, records: &str) {
        fs::create_dir_all(self.kernel_log().parent().unwrap()).unwrap();
        fs::write(self.kernel_log(), format!("5,0,0,-;Linux version 6.1\n{records}")).unwrap();
    }

    pub fn manager(&self) -> GenericHardwareManager {
        self.manager_of(Filter::Only(Vec::new()))
    }

    /// As in the ramdisk: of all disks of the machine.
    pub fn manager_of_all(&self) -> GenericHardwareManager {
        self.manager_of(Filter::All)
    }

    fn manager_of(&self, filter: Filter) -> GenericHardwareManager {
        let at = |name| self.0.path().join(name);
        let roots = Roots { sys: at("sys"), proc: at("proc"), dev: at("dev") };
        GenericHardwareManager::with_roots(roots, filter)
    }
}
