#!/bin/bash
# cage.sh DISK DIR COMMAND…: runs an agent where it can harm nothing but one loop device.
#
# In namespaces of its own: /dev holds that device and the harmless ones, /sys/block only that device, /sys/class/net
# what is in DIR/net, everything but DIR is read-only, the commands that stop a machine do nothing, and the
# capabilities that reach hardware are gone. The network is the host's, for the agents talk on loopback.
# CAGE_HOLDS_SANDBOXES: the agent makes cages of its own, for hardware managers, which takes mknod and kill.
set -euo pipefail

if [ "$1" != --inside ]; then
    exec unshare --mount --pid --fork --kill-child --ipc --uts --propagation private --mount-proc "$0" --inside "$@"
fi
shift
disk=$1 dir=$2
shift 2
name=$(basename "$disk")
number=$(cat "/sys/block/$name/dev")
case $disk in /dev/loop*) ;; *) echo "cage: $disk is no loop device" >&2; exit 64 ;; esac

mkdir -p "$dir/dev" "$dir/bin" "$dir/tmp" "$dir/run"
for command in halt poweroff reboot shutdown systemctl hwclock modprobe; do
    printf '#!/bin/sh\necho "$0 $*" >> "%s/stopped.log"\n' "$dir" > "$dir/bin/$command"
    chmod +x "$dir/bin/$command"
done

mount -t tmpfs -o mode=755 cage "$dir/dev"
for device in null:3 zero:5 full:7 random:8 urandom:9; do
    mknod -m 666 "$dir/dev/${device%:*}" c 1 "${device#*:}"
done
mknod -m 600 "$dir/dev/$name" b "${number%:*}" "${number#*:}"
ln -s /proc/self/fd "$dir/dev/fd"
mkdir "$dir/dev/shm" "$dir/dev/pts" "$dir/dev/disk" "$dir/dev/mapper"
mount --move "$dir/dev" /dev

[ -e /proc/sysrq-trigger ] && mount --bind /dev/null /proc/sysrq-trigger
real=$(readlink -f "/sys/block/$name")
mount -t tmpfs cage /sys/block
ln -s "$real" "/sys/block/$name"
mount -o remount,ro /sys/block

mount --bind "$dir/net" /sys/class/net
# The kernel command line that the cage shows, if it is not to be this machine's.
[ -e "$dir/cmdline" ] && mount --bind "$dir/cmdline" /proc/cmdline

mount --bind "$dir" "$dir"
mount --bind "$dir/run" /run
mkdir -p /run/ironic-python-agent
# An /etc of its own, of links to the real one: ironic-python-agent writes what it rescues with there.
mkdir -p "$dir/etc/ipa-rescue-config" "$dir/etc-before"
mount --bind /etc "$dir/etc-before"
mount -o remount,bind,ro "$dir/etc-before"
find "$dir/etc-before" -mindepth 1 -maxdepth 1 -exec ln -s -t "$dir/etc" {} +
mount --bind "$dir/etc" /etc
mount -o remount,bind,ro /

others=$(find /dev -type b ! -name "$name")
[ -z "$others" ] || { echo "cage: block devices left: $others" >&2; exit 65; }
touch /cage 2>/dev/null && { echo "cage: / can be written" >&2; rm -f /cage; exit 66; }

hostname caged
export PATH=$dir/bin:$PATH TMPDIR=$dir/tmp HOME=$dir/tmp
# Process 1 is a shell: to anneal-agent, being process 1 means to be the init of a ramdisk.
drop=-sys_boot,-sys_module,-sys_rawio,-net_admin,-net_raw,-sys_time,-sys_ptrace
[ -n "${CAGE_HOLDS_SANDBOXES:-}" ] || drop=$drop,-mknod,-kill
exec setpriv --bounding-set "$drop" \
    --inh-caps -all --no-new-privs /bin/bash -c '"$@" & wait $!' init "$@"
