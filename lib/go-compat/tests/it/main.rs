//! Against what OpenKruise's own managers stored in a real cluster.

mod stored;
