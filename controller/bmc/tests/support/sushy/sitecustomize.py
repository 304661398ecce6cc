"""Gives sushy-emulator's fake driver what only its libvirt driver has: BIOS, processors, memory.

Python imports this file when it starts with this directory in PYTHONPATH. The web service, and so every path,
method and JSON shape that the tests see, stays sushy-emulator's own.
"""

try:
    from sushy_tools.emulator.resources.systems.fakedriver import FakeDriver
except ImportError:  # pip and other programs of the same environment
    pass
else:
    FACTORY = {"BootMode": "Uefi", "ProcTurboMode": "Enabled", "NumCores": "10"}

    def get_bios(self, identity):
        return self._get(identity).get("bios") or dict(FACTORY)

    def set_bios(self, identity, attributes):
        self._update(identity, bios={**self.get_bios(identity), **attributes})

    def reset_bios(self, identity):
        self._update(identity, bios=dict(FACTORY))

    def get_processors(self, identity):
        return [
            {"id": f"CPU{n}", "socket": f"CPU {n}", "vendor": "Contoso", "model": "C86", "cores": "2", "threads": "4"}
            for n in range(2)
        ]

    FakeDriver.get_bios = get_bios
    FakeDriver.set_bios = set_bios
    FakeDriver.reset_bios = reset_bios
    FakeDriver.get_processors = get_processors
    FakeDriver.get_total_cpus = lambda self, identity: 8
    FakeDriver.get_total_memory = lambda self, identity: 16
