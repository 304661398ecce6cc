#!/bin/bash
# before.sh ROOT: called by mmdebstrap before the packages are configured. The initramfs has few drivers, lest a machine
# that is emulated loads all of them.
set -eu
mkdir -p "$1"/etc/initramfs-tools/conf.d
printf 'MODULES=list\nCOMPRESS=zstd\nRESUME=none\nBUSYBOX=n\nFSTYPE=ext4\n' > "$1"/etc/initramfs-tools/conf.d/anneal
printf '%s\n' virtio_pci virtio_blk virtio_scsi sd_mod nvme ext4 > "$1"/etc/initramfs-tools/modules
printf 'do_symlinks = yes\nlink_in_boot = yes\n' > "$1"/etc/kernel-img.conf
