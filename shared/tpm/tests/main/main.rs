//! Against a real software TPM, and against what others have written.

mod attacks;
mod clear;
mod firmware;
mod keys;
mod loaded;
mod ramdisk;
mod scene;
