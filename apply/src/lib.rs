//! The async shell around the engine: refresh, execute, recover.
