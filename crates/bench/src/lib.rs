//! The load generator: schedule, recorder, ledger, drivers, report; black box by construction.
