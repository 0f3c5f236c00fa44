//! Which server it is. What it can be asked for follows from it.

use load::Result;

use super::reader::Http;

/// A server, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Product {
    /// Name and version, as in "VictoriaMetrics 1.79.5"; `None` if it does not say it.
    pub(crate) name: Option<String>,
    /// How it is read.
    pub(crate) kind: ServerKind,
}

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// VictoriaMetrics.
    Victoria,
    QuestDb,
    /// A server that answers `/query` in InfluxQL, OpenTSDB's `/api/query`, or both.
    Other {
        /// Whether it answers `/api/query`.
        opentsdb: bool,
        /// Whether it answers `/query`.
        influx: bool,
    },
}

impl Product {
    /// Asks the server.
    pub(crate) fn of(http: &Http) -> Result<Self> {
        let metrics = http.answer("/metrics")?;
        if let Some(version) = label(&metrics.text(), "vm_app_version", "short_version") {
            return Ok(Self { name: Some(format!("VictoriaMetrics {version}")), kind: ServerKind::Victoria });
        }
        let sql = http.get_if_there("/exec?query=select%20build()");
        if let Ok(Some(answer)) = sql
            && let Some(build) = answer["dataset"][0][0].as_str()
        {
            let version = build.split([':', ',']).nth(1).unwrap_or(build).trim().to_owned();
            return Ok(Self { name: Some(version), kind: ServerKind::QuestDb });
        }
        let ping = http.answer("/ping")?;
        let influx = ping.header("X-Influxdb-Version").to_owned();
        let opentsdb = http.answer("/api/version")?;
        let is_opentsdb = opentsdb.is_success() && opentsdb.text().trim_start().starts_with('{');
        let name = match (influx.is_empty(), is_opentsdb) {
            (false, _) => Some(format!("InfluxDB {influx}")),
            (true, true) => opentsdb
                .json()
                .ok()
                .and_then(|answer| answer["version"].as_str().map(|version| format!("OpenTSDB {version}"))),
            (true, false) => None,
        };
        Ok(Self { name, kind: ServerKind::Other { opentsdb: is_opentsdb, influx: !influx.is_empty() } })
    }
}

/// The value of a label of a metric in Prometheus' text format.
fn label<'a>(text: &'a str, metric: &str, label: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(metric))?;
    let (_, value) = line.split_once(&format!("{label}=\""))?;
    value.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_label_of_a_metric() {
        let text = "x 1\nvm_app_version{version=\"victoria-metrics-2022\", short_version=\"v1.79.5\"} 1\n";
        assert_eq!(label(text, "vm_app_version", "short_version"), Some("v1.79.5"));
        assert_eq!(label("x 1\n", "vm_app_version", "short_version"), None);
    }
}
