"""Hardware manager for ironic-python-agent that sees one loop device and one made-up NIC, offers steps of every kind,
and is its generic one otherwise. A stock agent takes no loop device for a disk, which is right everywhere but here."""
import os
import time

from ironic_python_agent import errors
from ironic_python_agent import hardware

DISK = os.environ['CONTRACT_DISK']
MAC = os.environ['CONTRACT_MAC']
# Of this boot: which steps ran; its version; the file that ends a step that waits.
RAN, VERSION, GO = (os.path.expanduser(f'~/{name}') for name in ('ran', 'version', 'go'))


def step(name, **more):
    return {'step': name, 'interface': 'deploy', 'priority': 0, 'reboot_requested': False, 'abortable': True, **more}


STEPS = [
    step('look', argsinfo={'disk': {'description': 'The disk that must be there.', 'required': True}}),
    step('wait_for_go'),
    step('wait_unabortable', abortable=False),
    step('restart', reboot_requested=True, abortable=False),
    step('upgrade', argsinfo={'to': {'description': 'The new version.', 'required': False}}),
]


def ran(name):
    with open(RAN, 'a') as file:
        file.write(name + '\n')


class OneDisk(hardware.GenericHardwareManager):
    HARDWARE_MANAGER_NAME = 'contract_one_disk'

    @property
    def HARDWARE_MANAGER_VERSION(self):
        try:
            with open(VERSION) as file:
                return file.read()
        except FileNotFoundError:
            return '1'

    def evaluate_hardware_support(self):
        return hardware.HardwareSupport.SERVICE_PROVIDER

    def initialize(self):
        """Nothing: the generic manager would look for multipath, modules and a BMC."""

    def get_clean_steps(self, node, ports):
        return super().get_clean_steps(node, ports) + STEPS

    def get_deploy_steps(self, node, ports):
        return super().get_deploy_steps(node, ports) + STEPS

    def get_service_steps(self, node, ports):
        return super().get_service_steps(node, ports) + STEPS

    def look(self, node, ports, disk):
        ran('look')
        if disk != DISK:
            raise errors.HardwareManagerConfigurationError(f'{disk} is not there, only {DISK}')
        return {'seen': disk}

    def wait_for_go(self, node, ports):
        ran('wait_for_go')
        while not os.path.exists(GO):
            time.sleep(0.05)
        os.remove(GO)

    wait_unabortable = wait_for_go

    def restart(self, node, ports):
        ran('restart')

    def upgrade(self, node, ports, to='2'):
        """From now on the manager is another one."""
        ran('upgrade')
        with open(VERSION, 'w') as file:
            file.write(to)

    def erase_devices_metadata(self, node, ports):
        ran('erase_devices_metadata')
        return super().erase_devices_metadata(node, ports)

    def erase_devices(self, node, ports):
        ran('erase_devices')
        return super().erase_devices(node, ports)

    def _do_create_configuration(self, node, ports, raid_config):
        """No array is made of one disk; the configuration and the report of it are the stock agent's own."""
        ran('create_configuration')
        return raid_config

    def delete_configuration(self, node, ports):
        ran('delete_configuration')

    def list_block_devices(self, include_partitions=False, all_serial_and_wwn=False):
        with open(f'/sys/class/block/{os.path.basename(DISK)}/size') as sectors:
            size = int(sectors.read()) * 512
        return [hardware.BlockDevice(name=DISK, model='loop', size=size, rotational=False, serial='CONTRACT1',
                                     wwn='0xc0', vendor='contract')]

    def list_network_interfaces(self):
        return [hardware.NetworkInterface('eno1', MAC, ipv4_address='127.0.0.1', has_carrier=True)]

    def get_bmc_address(self):
        return None

    def get_bmc_v6address(self):
        return None

    def get_bmc_mac(self):
        raise errors.IncompatibleHardwareMethodError()
