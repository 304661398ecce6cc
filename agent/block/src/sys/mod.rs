//! The only unsafe code of this crate: ioctls and libblkid. Everything it offers is safe to call.

pub(crate) mod blk;
pub(crate) mod blkid;
pub(crate) mod loopdev;
pub(crate) mod nvme;
