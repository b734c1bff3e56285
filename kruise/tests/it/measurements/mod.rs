//! What depends on the speed or the memory of a machine, or takes minutes. CI runs them as a part of their own, so
//! that no other test disturbs them.

mod conversion;
mod playground;
mod restarts;
