#!/bin/bash
# build.sh OUT.raw: a Debian with cloud-init on a GPT disk image of 391 MiB that boots by BIOS and by UEFI.
#
# Root only, because mmdebstrap's chroot is. Nothing is mounted and no loop device is used: mke2fs fills the root file
# system from a directory, mtools the EFI system partition. What boots it is Debian's own, signed where Debian signs it.
#
#   sectors 2048..4095    14  BIOS boot: grub's core
#   16 MiB                15  EFI system partition: shim and grub, EFI/debian/BOOTX64.CSV
#   372 MiB                1  root, last, so that cloud-init can let it grow
set -eu
out=$1
suite=$(. /etc/os-release; echo "$VERSION_CODENAME")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "$(dirname "$out")/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
esp_mib=16
root_mib=372
root_uuid=5ca1ab1e-0000-4000-8000-00000000c0de
export root_uuid

mkdir "$work/packages"
cd "$work/packages"
# Root cannot drop its rights for a directory that only root may enter.
apt-get -qq -o APT::Sandbox::User=root download grub-pc-bin grub-efi-amd64-signed shim-signed shim-unsigned
for package in *.deb; do dpkg -x "$package" .; done
boot=$work/packages/usr/lib

packages=usr-is-merged,linux-image-cloud-amd64,initramfs-tools,zstd,systemd-sysv,udev,dbus,kmod,cloud-init
packages=$packages,cloud-guest-utils,fdisk,e2fsprogs,iproute2,openssh-server,sudo,netbase,procps,libpam-systemd
mmdebstrap --quiet --mode=root --variant=minbase --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
    --aptopt='Apt::Install-Recommends "false"' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --essential-hook="bash $here/before.sh \"\$1\"" \
    --customize-hook="bash $here/after.sh \"\$1\"" --include="$packages" "$suite" "$work/root"

image=$work/image
truncate -s $((3 + esp_mib + root_mib))M "$image"
sgdisk -n 14:2048:4095 -t 14:ef02 -n 15:4096:+${esp_mib}M -t 15:ef00 -n 1:0:0 -t 1:8304 -u 1:$root_uuid "$image" > "$work/log"
first=$(sgdisk -i 1 "$image" | awk '/First sector/ {print $3}')
sectors=$(sgdisk -i 1 "$image" | awk '/Partition size/ {print $3}')
mke2fs -q -t ext4 -L root -U $root_uuid -m 1 -J size=8 -d "$work/root" -E offset=$((first * 512)) "$image" $((sectors / 2))k

esp=$work/esp
truncate -s ${esp_mib}M "$esp"
mkfs.vfat -n ESP "$esp" >> "$work/log"
cat > "$work/grub.cfg" <<C
search --no-floppy --fs-uuid --set=root $root_uuid
set prefix=(\$root)/boot/grub
configfile \$prefix/grub.cfg
C
put() { mcopy -i "$esp" "$1" "::EFI/$2"; }
mmd -i "$esp" ::EFI ::EFI/BOOT ::EFI/debian
put "$boot/shim/shimx64.efi.signed" BOOT/BOOTX64.EFI
put "$boot/shim/shimx64.efi.signed" debian/shimx64.efi
put "$boot/shim/BOOTX64.CSV" debian/BOOTX64.CSV
for directory in BOOT debian; do
    put "$boot/grub/x86_64-efi-signed/grubx64.efi.signed" $directory/grubx64.efi
    put "$work/grub.cfg" $directory/grub.cfg
done
dd if="$esp" of="$image" bs=1M seek=2 conv=notrunc,sparse status=none

# For a BIOS: what grub-bios-setup would do to a disk. boot.img names the first sector of the core (2048) at 0x5c, and
# jumps to the drive that the BIOS names (two NOPs at 0x66); the core's first sector says at 500 where the rest of it is,
# and at 508 how many sectors that are.
core=$work/core
grub-mkimage -d "$boot/grub/i386-pc" -O i386-pc -p '(hd0,gpt1)/boot/grub' -c "$work/grub.cfg" -o "$core" \
    biosdisk part_gpt ext2 search search_fs_uuid configfile normal linux echo test boot
number() { # BYTES VALUE: little-endian
    local value=$2
    for _ in $(seq "$1"); do
        printf "\\x$(printf %02x $((value & 255)))"
        value=$((value >> 8))
    done
}
patch() { dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
head -c 440 "$boot/grub/i386-pc/boot.img" > "$work/boot"
number 8 2048 | patch "$work/boot" 92
printf '\x90\x90' | patch "$work/boot" 102
size=$(stat -c %s "$core")
number 8 2049 | patch "$core" 500
number 2 $(((size + 511) / 512 - 1)) | patch "$core" 508
dd if="$work/boot" of="$image" conv=notrunc status=none
dd if="$core" of="$image" bs=512 seek=2048 conv=notrunc status=none
mv "$image" "$out"
