//! The serverless compute service: its descriptor.
