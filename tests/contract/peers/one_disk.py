"""Hardware manager for ironic-python-agent that sees one loop device and one made-up NIC, and is its generic one
otherwise. A stock agent takes no loop device for a disk, which is right everywhere but here."""
import os

from ironic_python_agent import errors
from ironic_python_agent import hardware

DISK = os.environ['CONTRACT_DISK']
MAC = os.environ['CONTRACT_MAC']


class OneDisk(hardware.GenericHardwareManager):
    HARDWARE_MANAGER_NAME = 'contract_one_disk'
    HARDWARE_MANAGER_VERSION = '1'

    def evaluate_hardware_support(self):
        return hardware.HardwareSupport.SERVICE_PROVIDER

    def initialize(self):
        """Nothing: the generic manager would look for multipath, modules and a BMC."""

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
