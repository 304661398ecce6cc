//! `anneal node virtual-media …`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, pretty, show};
use clap::{Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::json;

/// What to do with the virtual drives.
#[derive(Debug, Subcommand)]
pub enum VirtualMedia {
    /// The drives, and what is in them.
    Show {
        /// Name or UUID.
        node: String,
    },
    /// Insert an image, which the BMC fetches itself. What the BMC refuses is in the node's last_error.
    Attach {
        /// Name or UUID.
        node: String,
        /// Kind of drive.
        #[arg(long)]
        device: Drive,
        /// URL of the image.
        #[arg(long, value_name = "URL")]
        image: String,
    },
    /// Eject images.
    Detach {
        /// Name or UUID.
        node: String,
        /// Only from drives of this kind; may be repeated.
        #[arg(long)]
        device: Vec<Drive>,
    },
}

/// Kind of a virtual drive.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Drive {
    /// A CD drive.
    Cdrom,
    /// A floppy drive.
    Floppy,
    /// A disk.
    Disk,
}

impl Drive {
    fn name(self) -> &'static str {
        match self {
            Self::Cdrom => "cdrom",
            Self::Floppy => "floppy",
            Self::Disk => "disk",
        }
    }
}

/// Does it, and says what failed at the BMC.
pub async fn run(client: &Client, format: Format, command: VirtualMedia) -> Result<(), Failure> {
    let node = match command {
        VirtualMedia::Show { node } => {
            return show(format, &client.get(&["nodes", &node, "vmedia"], &[]).await?, pretty);
        }
        VirtualMedia::Attach { node, device, image } => {
            let body = json!({"device_type": device.name(), "image_url": image});
            client.send(Method::POST, &["nodes", &node, "vmedia"], &[], Some(body)).await?;
            node
        }
        VirtualMedia::Detach { node, device } => {
            let kinds: Vec<_> = device.into_iter().map(Drive::name).collect();
            let query = (!kinds.is_empty()).then(|| ("device_types", kinds.join(",")));
            client.send(Method::DELETE, &["nodes", &node, "vmedia"], &Vec::from_iter(query), None).await?;
            node
        }
    };
    let seen = client.get(&["nodes", &node], &[("fields", "uuid,name,last_error".to_owned())]).await?;
    if let Some(error) = seen["last_error"].as_str() {
        return Err(Failure::Ended(error.to_owned()));
    }
    show(format, &seen, |_| format!("{node}: done"))
}
