//! Test-only tools: faulty disk, simulated clock, seeded generators, server launcher.
