//! What the whole-path tests share: reading a file of `testdata`, a sheet that collects what was
//! wanted and what came, and the naive twin that checks the conservation of time.

pub(crate) mod read;
pub(crate) mod sheet;
pub(crate) mod twin;
