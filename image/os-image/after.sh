#!/bin/bash
# after.sh ROOT: called by mmdebstrap when all packages are there. The image keeps nothing of the machine that made it,
# starts what an instance needs, and says on the serial port what cloud-init does.
set -eu
cd "$1"
cat > etc/fstab <<C
UUID=$root_uuid / ext4 rw,discard,errors=remount-ro 0 1
LABEL=ESP /boot/efi vfat umask=0077,nofail,noauto 0 1
C
mkdir -p boot/efi boot/grub etc/systemd/journald.conf.d
echo instance > etc/hostname
: > etc/machine-id
printf '[Journal]\nStorage=volatile\n' > etc/systemd/journald.conf.d/anneal.conf
cat > etc/cloud/cloud.cfg.d/99-anneal.cfg <<'C'
datasource_list: [ConfigDrive, NoCloud, None]
locale: false
ssh_genkeytypes: [ed25519]
system_info:
  network: {renderers: [networkd]}
  default_user: {name: debian, sudo: ["ALL=(ALL) NOPASSWD:ALL"], shell: /bin/bash}
cloud_init_modules: [bootcmd, write-files, growpart, resizefs, set_hostname, update_hostname, users-groups, ssh]
cloud_config_modules: [set-passwords, runcmd]
cloud_final_modules: [scripts-user, phone-home, final-message]
output: {all: "| tee -a /var/log/cloud-init-output.log /dev/console"}
C
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    getty@tty1.service systemd-networkd-wait-online.service systemd-resolved.service systemd-binfmt.service \
    systemd-update-utmp.service systemd-pstore.service \
    modprobe@{drm,configfs,dm_mod,fuse,loop,efi_pstore}.service dev-hugepages.mount dev-mqueue.mount \
    sys-kernel-{debug,tracing,config}.mount sys-fs-fuse-connections.mount proc-sys-fs-binfmt_misc.automount; do
    ln -sf /dev/null "etc/systemd/system/$unit"
done
chroot . systemctl -q enable systemd-networkd serial-getty@ttyS0 ssh
cat > boot/grub/grub.cfg <<C
set timeout=0
search --no-floppy --fs-uuid --set=root $root_uuid
linux /boot/vmlinuz root=UUID=$root_uuid ro console=tty0 console=ttyS0,115200n8 quiet cryptomgr.notests random.trust_cpu=on audit=0 apparmor=0 mitigations=off systemd.show_status=false
initrd /boot/initrd.img
boot
C
rm -rf etc/ssh/ssh_host_* var/lib/apt/lists/* var/cache/apt/*.bin usr/share/locale usr/share/i18n usr/lib/udev/hwdb.*
