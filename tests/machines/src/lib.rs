//! Scenarios on emulated servers: real firmware, the real ramdisk, the real binaries. See `tests/`.
