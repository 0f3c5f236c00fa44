//! The application: authenticate, validate, limit, append, fan out; the device registry.
