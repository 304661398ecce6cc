"""Hardware manager for ironic-python-agent that sees one loop device and one made-up NIC, offers a step of every kind,
and is its generic one otherwise. A stock agent takes no loop device for a disk, which is right everywhere but here."""
import os

from ironic_python_agent import errors
from ironic_python_agent import hardware

DISK = os.environ['CONTRACT_DISK']
MAC = os.environ['CONTRACT_MAC']

LOOK = {
    'step': 'look', 'interface': 'deploy', 'priority': 0, 'reboot_requested': False, 'abortable': True,
    'argsinfo': {'disk': {'description': 'The disk that must be there.', 'required': True}},
}


class OneDisk(hardware.GenericHardwareManager):
    HARDWARE_MANAGER_NAME = 'contract_one_disk'
    HARDWARE_MANAGER_VERSION = '1'

    def evaluate_hardware_support(self):
        return hardware.HardwareSupport.SERVICE_PROVIDER

    def initialize(self):
        """Nothing: the generic manager would look for multipath, modules and a BMC."""

    def get_clean_steps(self, node, ports):
        return super().get_clean_steps(node, ports) + [LOOK]

    def get_deploy_steps(self, node, ports):
        return super().get_deploy_steps(node, ports) + [LOOK]

    def get_service_steps(self, node, ports):
        return super().get_service_steps(node, ports) + [LOOK]

    def look(self, node, ports, disk):
        if disk != DISK:
            raise errors.HardwareManagerConfigurationError(f'{disk} is not there, only {DISK}')
        return {'seen': disk}

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
