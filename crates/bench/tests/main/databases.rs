//! Real databases on loopback: each with a temporary directory and a free port, stopped by process id.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::peers::{postgres_programs, required};

const PASSWORD: &str = "s3cret:/%";
const PASSWORD_IN_URL: &str = "s3cret%3a%2f%25";
const PATIENCE: Duration = Duration::from_secs(60);

/// A running database. Dropping it kills the process.
pub(crate) struct Database {
    child: Child,
    scheme: &'static str,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Database {
    /// MariaDB.
    pub(crate) fn mariadb() -> Self {
        let [server, install] =
            ["mariadbd", "mariadb-install-db"].map(|name| required(name, "mariadb-server"));
        let (directory, data, user) = place("mysql");
        let mut command = user.command(&install);
        command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
        finish(command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]));
        let init = data.join("init.sql");
        let sql = format!(
            "CREATE DATABASE sbtest;\nCREATE USER 'sbtest'@'%' IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON *.* TO 'sbtest'@'%';\n"
        );
        fs::write(&init, sql).unwrap();
        let port = free_port();
        let child = user
            .command(&server)
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", data.join("s").display()))
            .arg(format!("--init-file={}", init.display()))
            .arg(format!("--port={port}"))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-buffer-pool-size=64M"])
            .args(["--innodb-flush-log-at-trx-commit=0", "--max-connections=100"])
            .spawn()
            .unwrap();
        Self { child, scheme: "mysql", port, _directory: directory }.ready()
    }

    /// PostgreSQL.
    pub(crate) fn postgres() -> Self {
        let bin = postgres_programs();
        let (directory, data, user) = place("postgres");
        let password = directory.path().join("password");
        fs::write(&password, PASSWORD).unwrap();
        let mut command = user.command(&bin.join("initdb"));
        command.arg("-D").arg(&data).arg(format!("--pwfile={}", password.display()));
        finish(command.args([
            "-U",
            "sbtest",
            "--auth=scram-sha-256",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        ]));
        let port = free_port();
        let child = user
            .command(&bin.join("postgres"))
            .arg("-D")
            .arg(&data)
            .arg("-p")
            .arg(port.to_string())
            .arg("-k")
            .arg(&data)
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
            // A part of Debian's package.
            .args(["-c", "shared_preload_libraries=pg_stat_statements"])
            .spawn()
            .unwrap();
        Self { child, scheme: "postgres", port, _directory: directory }.ready()
    }

    fn ready(mut self) -> Self {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the {} server ended before it was ready: {status}", self.scheme);
            }
            let logged_in = TcpStream::connect(("127.0.0.1", self.port)).is_ok() && self.answers();
            if logged_in {
                return self;
            }
            assert!(Instant::now() < deadline, "the {} server is not ready", self.scheme);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn answers(&self) -> bool {
        let url = self.url(if self.scheme == "mysql" { "sbtest" } else { "postgres" });
        let address = clients::sql::Address::parse(&url).unwrap();
        targets::sql::ServerCounters::connect(&address).is_ok()
    }

    /// The address with the right user and password.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("{}://sbtest:{PASSWORD_IN_URL}@127.0.0.1:{}/{database}", self.scheme, self.port)
    }

    /// The address with a wrong password.
    pub(crate) fn wrong_url(&self) -> String {
        format!("{}://sbtest:guess@127.0.0.1:{}/postgres", self.scheme, self.port)
    }

    /// Kills it, like a crash.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops or continues it.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // PostgreSQL's children end with their parent's SIGINT; after SIGKILL they would survive for a moment.
        if self.child.try_wait().unwrap().is_none() {
            self.signal(Signal::CONT);
            self.signal(Signal::INT);
            let deadline = Instant::now() + Duration::from_secs(5);
            while self.child.try_wait().unwrap().is_none()
                && Instant::now() < deadline
                && self.scheme == "postgres"
            {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The user of a server: neither may run as root.
struct User {
    ids: Option<(u32, u32)>,
}

impl User {
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/tmp");
        if let Some((uid, gid)) = self.ids {
            command.uid(uid).gid(gid);
        }
        command
    }
}

fn place(name: &str) -> (tempfile::TempDir, PathBuf, User) {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    fs::create_dir(&data).unwrap();
    let mut user = User { ids: None };
    if rustix::process::getuid().is_root() {
        let id = |flag: &str| -> u32 {
            let out = Command::new("id").args([flag, name]).output().unwrap();
            String::from_utf8(out.stdout).unwrap().trim().parse().unwrap()
        };
        let (uid, gid) = (id("-u"), id("-g"));
        chown(directory.path(), Some(uid), Some(gid)).unwrap();
        chown(&data, Some(uid), Some(gid)).unwrap();
        user.ids = Some((uid, gid));
    }
    (directory, data, user)
}

fn finish(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
