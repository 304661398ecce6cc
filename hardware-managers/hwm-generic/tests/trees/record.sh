#!/bin/sh
# Writes down what the generic manager reads of a machine's sysfs, a file a line, for the trees next to this script:
#
#   MODE PATH text VALUE      a file of text; a line feed in it becomes \n
#   MODE PATH hex 0a0b…       a file of other bytes
#   link PATH TARGET          a symbolic link, by the last part of where it leads
#
# Usage: sh record.sh [/sys] > NAME.tree      as root. Serial numbers, UUIDs and passwords are left out.
set -u
cd "${1:-/sys}" || exit 1
LC_ALL=C
export LC_ALL

for file in \
    class/firmware-attributes/*/attributes/* class/firmware-attributes/*/attributes/*/* \
    class/firmware-attributes/*/authentication/*/* \
    firmware/efi/efivars/*-8be4df61-93ca-11d2-aa0d-00e098032b8c \
    class/dmi/id/bios_* class/dmi/id/ec_* class/dmi/id/product_name class/dmi/id/sys_vendor \
    bus/pci/devices/*/vendor bus/pci/devices/*/device bus/pci/devices/*/class bus/pci/devices/*/revision \
    bus/pci/devices/*/numa_node bus/pci/devices/*/driver \
    class/tpm/*/tpm_version_major class/tpm/*/device/description class/tpm/*/device/driver \
    bus/platform/devices/ipmi_bmc.*/* firmware/dmi/entries/38-*/raw
do
    case $file in *[Pp]assword | *[Pp]assword/current_value | *serial* | *uuid* | *guid | *signature* | *certificate* | *debug_cmd) continue ;; esac
    if [ -L "$file" ]; then
        echo "link $file $(basename "$(readlink "$file")")"
    elif [ -f "$file" ] && hex=$(od -An -v -tx1 "$file" 2>/dev/null | tr -d ' \n'); then
        mode=$(stat -L -c %a "$file")
        if printf %s "$hex" | sed 's/../& /g' | grep -Eq '(^| )(0[0-8b-f]|1[0-9a-f]|7f|[89a-f][0-9a-f]) '; then
            echo "$mode $file hex $hex"
        else
            echo "$mode $file text $(awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }' "$file")"
        fi
    fi
done
