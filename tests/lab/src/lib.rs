//! Emulated bare metal for tests: QEMU nodes, a Redfish BMC over QMP, network namespaces.
