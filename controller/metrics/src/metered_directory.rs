//! A directory of boots whose answers are counted.

use crate::counts::Counts;
use crate::labels::{ANSWERS, HELLOS};
use async_trait::async_trait;
use boot::{BootAnswer, BootDirectory, HelloAnswer, Mac, MediumAnswer};
use std::net::IpAddr;
use std::sync::Arc;

/// Counts the answers of another directory.
pub struct MeteredDirectory {
    pub directory: Arc<dyn BootDirectory>,
    pub counts: Arc<Counts>,
}

/// Files of a boot.
const FILES: [&str; 5] = ["vmlinuz", "initramfs", "rescue", "firmware", "ipxe"];

#[async_trait]
impl BootDirectory for MeteredDirectory {
    async fn boot_for(&self, mac: Mac, from: IpAddr) -> BootAnswer {
        let answer = self.directory.boot_for(mac, from).await;
        let [ramdisk, instance, wait, local_disk, unknown] = ANSWERS;
        self.counts.boots.count([match answer {
            BootAnswer::Ramdisk { .. } => ramdisk,
            BootAnswer::Instance { .. } => instance,
            BootAnswer::Wait => wait,
            BootAnswer::LocalDisk => local_disk,
            BootAnswer::Unknown => unknown,
        }]);
        answer
    }

    async fn hello(&self, nonce: &str, from: Option<IpAddr>) -> HelloAnswer {
        let answer = self.directory.hello(nonce, from).await;
        let [heard, not_awaited, too_many, failed] = HELLOS;
        self.counts.hellos.count([match answer {
            HelloAnswer::Heard => heard,
            HelloAnswer::NotAwaited => not_awaited,
            HelloAnswer::TooMany => too_many,
            HelloAnswer::Failed => failed,
        }]);
        answer
    }

    // A BMC reads a medium in any number of ranges: their number says nothing.
    async fn medium(&self, file_name: &str, from: Option<IpAddr>) -> MediumAnswer {
        self.directory.medium(file_name, from).await
    }

    async fn first_byte(&self, mac: Option<&str>, file: &str) {
        if let Some(file) = FILES.into_iter().find(|known| *known == file) {
            self.counts.boot_files.count([file]);
        }
        self.directory.first_byte(mac, file).await;
    }
}
