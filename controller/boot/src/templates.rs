//! Templates of boot media that were made, by the files in them: nodes with the same loaders and add-on firmware share one.

use boot_media::{Reader, Template};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Templates that are kept, each with some 350 kB of boot loaders. A template that is not is made again in milliseconds.
const KEPT: usize = 8;

/// A template, and the files that it was made for.
#[derive(Clone)]
pub(crate) struct ReadyTemplate {
    pub(crate) files: Vec<Version>,
    pub(crate) template: Arc<Template>,
}

/// A file as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) length: u64,
    pub(crate) modified: SystemTime,
}

/// The agent that reads the overlay, and the paths of all files.
pub(crate) type TemplateKey = (Reader, Vec<PathBuf>);

/// The templates that were used last, the newest first.
#[derive(Default)]
pub(crate) struct Templates(Mutex<VecDeque<(TemplateKey, ReadyTemplate)>>);

impl Templates {
    /// The template of these, if it was made for the files as they are now.
    pub(crate) fn get(&self, wanted: &TemplateKey, files: &[Version]) -> Option<ReadyTemplate> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(of, made)| of == wanted && made.files == files)?;
        let found = kept.remove(at)?;
        let made = found.1.clone();
        kept.push_front(found);
        Some(made)
    }

    /// Keeps a template, in the place of an older one of these.
    pub(crate) fn keep(&self, of: TemplateKey, made: ReadyTemplate) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(older, _)| *older != of);
        kept.push_front((of, made));
        kept.truncate(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    fn made(length: u64) -> ReadyTemplate {
        let files = vec![Version { length, modified: UNIX_EPOCH }];
        ReadyTemplate { files, template: Arc::new(Template::signed(length).unwrap()) }
    }

    fn archives(number: usize) -> TemplateKey {
        let paths = vec![PathBuf::from("initramfs"), PathBuf::from(format!("{number}.cpio.zst"))];
        (Reader::Anneal, paths)
    }

    #[test]
    fn the_templates_that_were_used_last_are_kept() {
        let templates = Templates::default();
        let get =
            |number: usize, length: u64| templates.get(&archives(number), &made(length).files).is_some();
        assert!(!get(0, 1));
        for number in 0..KEPT {
            templates.keep(archives(number), made(1));
        }
        assert!(get(0, 1), "as it was used");
        assert!(!get(0, 2), "its files have changed");
        templates.keep(archives(KEPT), made(1));
        assert!(get(0, 1) && get(KEPT, 1) && !get(1, 1), "the one that was not used for longest is gone");
        templates.keep(archives(0), made(2));
        assert!(get(0, 2) && !get(0, 1), "the newer one is in its place");
        assert_eq!(templates.0.lock().unwrap().len(), KEPT);
    }
}
