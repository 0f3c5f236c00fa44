//! Tests of the load runner against minimal servers and real ones.

#![allow(clippy::unwrap_used)] // A test helper that fails fails its test.

mod acker;
mod broker;
mod commands;
mod databases;
mod elasticsearch;
mod engine;
mod faults;
mod faulty_broker;
mod generator;
mod gsn;
mod hbase;
mod hbase_server;
mod http;
mod mosquitto;
mod peers;
mod plans;
mod redis;
mod renewal;
mod scenarios;
mod series;
mod slices;
mod sql;
mod sql_scenarios;
mod tcp;
mod tcp_nginx;
mod tls;
