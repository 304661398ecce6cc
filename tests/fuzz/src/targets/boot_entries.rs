//! What decides which boot entry is made and which ones go: the file system of an EFI system partition with the list of its
//! loaders, and the entries that the firmware has.

use boot_entries::fat::Fat;
use boot_entries::plan::{Firmware, plan};
use boot_entries::{Architecture, LoadOption, device_path, loader};
use std::collections::BTreeSet;

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    if let Ok(fat) = Fat::open(input, input.len() as u64) {
        for architecture in [Architecture::X64, Architecture::Aa64] {
            if let Ok(found) = loader::find(&fat, architecture) {
                assert!(found.path.starts_with('\\') && !found.path.contains("\\..\\"), "{found:?}");
                assert!(!found.label.is_empty() && !found.label.contains(char::is_control), "{found:?}");
            }
        }
    }
    if let Some(option) = LoadOption::parse(input) {
        let partition = device_path::partition(&option.path);
        let _ = device_path::file(&option.path);
        let ours = LoadOption {
            active: true,
            description: "x".to_owned(),
            path: vec![0x7f, 0xff, 4, 0],
            data: Vec::new(),
        };
        let value = ours.bytes().expect("it is short");
        let firmware = Firmware { entries: vec![(3, input.to_vec())], order: vec![3], ..Firmware::default() };
        let planned = plan(&firmware, &ours, &value, Some(&BTreeSet::new())).expect("there are numbers");
        assert!(planned.remove.is_empty() || partition.is_some(), "an entry goes that is on no disk");
    }
}
