//! Scenarios of the load balancer against nginx: its counters agree with the load.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bench::Context;
use bench::runner::{self, Options};
use load::result::Bundle;
use load::scenario::Scenario;

use crate::databases::free_port;
use crate::peers::required;

/// A web server with its counters at `/status`.
struct Nginx {
    child: Child,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Nginx {
    fn start() -> Self {
        let program = required("nginx", "nginx-light");
        let directory = tempfile::tempdir().unwrap();
        let (place, port) = (directory.path().display().to_string(), free_port());
        let text = format!(
            "daemon off; worker_processes 2; pid {place}/pid; error_log {place}/error;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; client_body_temp_path {place}/b; proxy_temp_path {place}/p; fastcgi_temp_path {place}/f;\n\
             uwsgi_temp_path {place}/u; scgi_temp_path {place}/s; keepalive_requests 1000000;\n\
             server {{ listen 127.0.0.1:{port}; location = /status {{ stub_status; }} location / {{ return 200 \"ok\"; }} }} }}\n"
        );
        let file = directory.path().join("nginx.conf");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(program);
        command.arg("-c").arg(&file).arg("-p").arg(directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut nginx = Self { child: command.spawn().unwrap(), port, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let alive = nginx.child.try_wait().unwrap().is_none();
            assert!(Instant::now() < deadline && alive, "nginx does not start");
            thread::sleep(Duration::from_millis(20));
        }
        nginx
    }

    /// The numbers of connections accepted and requests answered so far. Reading them takes one of each.
    fn counted(&self) -> (u64, u64) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(b"GET /status HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let line = text.lines().skip_while(|line| !line.contains("accepts")).nth(1).unwrap();
        let numbers: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        (numbers[0], numbers[2])
    }

    /// The counts of a run of one phase of `slb-s1` at a hundredth, without those of reading them.
    fn run(&self, phase: &str, sets: &[&str]) -> (Bundle, u64, u64) {
        let before = self.counted();
        let mut all = vec![
            format!("target.url=http://127.0.0.1:{}/", self.port),
            "scale=0.1".to_owned(),
            "gates.lag_p99_us_max=1e9".to_owned(),
            "gates.steal_share_max=1".to_owned(),
            "gates.generator_core_max=10".to_owned(),
        ];
        all.extend(sets.iter().map(|set| (*set).to_owned()));
        let scenario = Scenario::load("slb-s1", &all).unwrap();
        let options = Options { quiet: true, phases: vec![phase.to_owned()], ..Options::default() };
        let bundle = runner::run(&scenario, &options, &Context::default(), &mut runner::alone).unwrap();
        assert!(bundle.result.validity().is_quotable(), "{bundle}");
        assert!(bundle.result.target.product.as_ref().unwrap().starts_with("nginx/"), "{bundle}");
        let after = self.counted();
        // The run checked the server, and so did the test: two of each.
        (bundle, after.0 - before.0 - 2, after.1 - before.1 - 2)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process};
        // The master stops its workers in order.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

#[test]
fn connections_and_requests_are_those_that_nginx_counts() {
    let nginx = Nginx::start();
    let (bundle, accepted, requests) = nginx.run("connections", &["phase.connections.hold=1s"]);
    assert_eq!((accepted, requests), (500, 5), "{bundle}");
    let findings = bundle.result.findings.join("\n");
    assert!(findings.contains("500 connections were asked for: reached. 500 were established"), "{findings}");
    assert!(findings.contains("Of a sample of 5 asked then, 5 answered"), "{findings}");
    assert!(findings.contains(", target ") && findings.contains("kernel "), "{findings}");

    let sets = ["phase.cps.close=after-request", "phase.cps.warmup=0s", "phase.cps.duration=2s"];
    let (bundle, accepted, requests) = nginx.run("cps", &sets);
    let cps = &bundle.main_phase().unwrap().operations;
    let completed: Vec<u64> = cps.iter().map(|operation| operation.counts.completed).collect();
    assert_eq!(completed, [accepted, requests], "{bundle}");
    assert!((500..700).contains(&accepted), "Poisson around 600: {accepted}");

    let (bundle, accepted, requests) = nginx.run("qps", &["phase.qps.warmup=0s", "phase.qps.duration=2s"]);
    assert_eq!((accepted, requests), (10, bundle.main_phase().unwrap().total.counts.completed), "{bundle}");
}
