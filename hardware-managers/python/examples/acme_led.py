#!/usr/bin/env python3
"""An example: the machines of ACME have a locator LED, BIOS settings, and disks with an erase of their own."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import anneal_hwm as hwm  # noqa: E402


class Acme(hwm.HardwareManager):
    name, version, vendor = "acme_led", "1.0", "ACME Inc."

    def detect(self, inventory):
        if inventory["system_vendor"]["manufacturer"] != "ACME":
            return hwm.NONE
        return hwm.Claimed(
            hwm.SERVICE_PROVIDER,
            claims=[hwm.block(model="ACME *")],
            quirks=[hwm.quirk("bmc", "its BMC hangs when it is asked over IPMI", product_name="R1*")],
        )

    def inventory(self, call):
        return {"bios_settings": [{"name": "BootMode", "value": "Uefi"}]}

    @hwm.step("management", clean=0, service=0, abortable=True, idempotent=True, destructive="none",
              args={"times": hwm.arg("How often", {"type": "integer", "minimum": 1, "maximum": 1000})},
              result={"type": "object", "required": ["blinked"], "properties": {"blinked": {"type": "integer"}}})
    def blink(self, call):
        """Blinks the locator LED."""
        times = call.args.get("times", 20)
        begin = call.resumed["blinked"] if call.resumed else 0
        for n in range(begin, times):
            call.check_cancelled({"blinked": n})
            call.sleep(0.01)
            call.progress(percent=100 * (n + 1) // times, text="blink %d" % (n + 1))
            call.checkpoint({"blinked": n + 1})
        return {"blinked": times}

    @hwm.step("bios", clean=0, deploy=0, destructive="configuration", idempotent=True, reboot_requested=True,
              args={"mode": hwm.arg("Bios or Uefi", {"enum": ["Bios", "Uefi"]}, required=True)})
    def set_boot_mode(self, call):
        """Says how the machine boots from now on."""
        print("boot mode is", call.args["mode"])
        return hwm.reboot()

    def erase_capabilities(self, disk):
        if not (disk.get("model") or "").startswith("ACME "):
            return None
        return [{"method": "acme-purge", "level": "purge", "expected": "zeroes", "estimated_duration_s": 2}]

    def erase(self, call):
        if self.erase_capabilities(call.disk) is None:
            raise hwm.Declined("%s is no disk of ACME's" % call.disk["name"])
        start = call.read_device(hwm.block(call.disk["name"]), 0, 512)
        return call.disk["size"], {"zeroes_already": not any(start)}


if __name__ == "__main__":
    hwm.serve(Acme())
