//! The diagnostics of reading a spec, one constructor each.
