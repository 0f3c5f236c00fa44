//! Exceptions of servers, and what a client does about them.

use super::messages::{ExceptionResponse, NameBytesPair};

/// The client's reaction to an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// It finds the region again and repeats the call.
    Relocate,
    /// It waits and repeats the call at the same server.
    Wait,
    /// It gives up: the same call fails again.
    GiveUp,
}

/// The region is not at this server, or the server is going away.
const RELOCATE: [&str; 7] = [
    "NotServingRegionException",
    "RegionMovedException",
    "RegionOpeningException",
    "RegionServerStoppedException",
    "RegionServerAbortedException",
    "ServerNotRunningYetException",
    "WrongRegionException",
];
/// The server cannot carry out the call now.
const WAIT: [&str; 8] = [
    "RegionTooBusyException",
    "CallQueueTooBigException",
    "CallDroppedException",
    "RetryImmediatelyException",
    "MultiActionResultTooLarge",
    "PleaseHoldException",
    "CallTimeoutException",
    "RpcThrottlingException",
];
/// The scanner at the server is gone or out of step. A client opens a new one after the last row that it has; HBase marks
/// them as final because the same call fails again.
const SCANNER: [&str; 3] =
    ["UnknownScannerException", "ScannerResetException", "OutOfOrderScannerNextException"];

/// An exception of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exception {
    /// The class with its package.
    pub(super) class: String,
    /// The first line of the text.
    pub(super) message: String,
    /// The client's reaction to it.
    pub(super) remedy: Remedy,
    /// The server that the region has moved to, if the server says so.
    pub(super) moved_to: Option<(String, u16)>,
}

impl Exception {
    /// The exception of a whole call.
    pub(super) fn of_call(response: ExceptionResponse) -> Self {
        let class = response.exception_class_name.unwrap_or_default();
        let remedy = match response.do_not_retry {
            Some(true) if SCANNER.contains(&short(&class)) => Remedy::Wait,
            Some(true) => Remedy::GiveUp,
            _ => remedy(&class, Remedy::Wait),
        };
        let port = response.port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        let moved_to = response.hostname.filter(|host| !host.is_empty()).zip(port);
        let text = response.stack_trace.unwrap_or_default();
        Self { message: first_line(&class, &text), class, remedy, moved_to }
    }

    /// The exception of an action or of a region within a call of several actions. It has no flag that states whether the
    /// client may retry, so classes that are not known here are final.
    pub(super) fn of_action(pair: &NameBytesPair) -> Self {
        let text = String::from_utf8_lossy(pair.value.as_deref().unwrap_or_default());
        Self {
            message: first_line(&pair.name, &text),
            class: pair.name.clone(),
            remedy: remedy(&pair.name, Remedy::GiveUp),
            moved_to: None,
        }
    }

    /// The class without its package: errors are counted by it.
    pub(super) fn short_class(&self) -> &str {
        short(&self.class)
    }
}

impl std::fmt::Display for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.message.as_str() {
            "" => f.write_str(self.short_class()),
            message => write!(f, "{}: {message}", self.short_class()),
        }
    }
}

fn short(class: &str) -> &str {
    class.rsplit(['.', '$']).next().unwrap_or(class)
}

fn remedy(class: &str, otherwise: Remedy) -> Remedy {
    let class = short(class);
    if RELOCATE.contains(&class) {
        Remedy::Relocate
    } else if WAIT.contains(&class) {
        Remedy::Wait
    } else {
        otherwise
    }
}

/// The first line of a stack trace, without the class that it begins with.
fn first_line(class: &str, trace: &str) -> String {
    let line = trace.lines().next().unwrap_or_default();
    line.strip_prefix(class).unwrap_or(line).trim_start_matches(':').trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(class: &str, do_not_retry: Option<bool>) -> Exception {
        Exception::of_call(ExceptionResponse {
            exception_class_name: Some(class.to_owned()),
            stack_trace: Some(format!("{class}: TestTable,,1. is not online\n\tat somewhere")),
            do_not_retry,
            hostname: None,
            port: None,
        })
    }

    #[test]
    fn the_class_and_the_flag_decide() {
        let moved = of("org.apache.hadoop.hbase.NotServingRegionException", Some(false));
        assert_eq!(moved.remedy, Remedy::Relocate);
        assert_eq!(moved.to_string(), "NotServingRegionException: TestTable,,1. is not online");
        assert_eq!(of("org.apache.hadoop.hbase.RegionTooBusyException", None).remedy, Remedy::Wait);
        assert_eq!(of("java.io.IOException", None).remedy, Remedy::Wait, "a client of HBase retries it");
        assert_eq!(
            of("org.apache.hadoop.hbase.NotServingRegionException", Some(true)).remedy,
            Remedy::GiveUp
        );
    }

    #[test]
    fn an_action_is_retried_only_for_known_classes() {
        let of = |name: &str| {
            Exception::of_action(&NameBytesPair {
                name: name.to_owned(),
                value: Some(b"text\nmore".to_vec()),
            })
        };
        let missing = of("org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException");
        assert_eq!((missing.remedy, missing.message.as_str()), (Remedy::GiveUp, "text"));
        assert_eq!(of("org.apache.hadoop.hbase.exceptions.RegionMovedException").remedy, Remedy::Relocate);
    }

    #[test]
    fn a_region_that_moved_names_its_server() {
        let response = |host: &str, port| {
            let hostname = Some(host.to_owned());
            Exception::of_call(ExceptionResponse { hostname, port: Some(port), ..Default::default() })
                .moved_to
        };
        assert_eq!(response("rs2", 16_020), Some(("rs2".to_owned(), 16_020)));
        assert_eq!((response("", 16_020), response("rs2", -1)), (None, None));
    }
}
