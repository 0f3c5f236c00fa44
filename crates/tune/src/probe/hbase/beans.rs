//! Beans of `/jmx`.

use serde_json::Value as Json;

/// The counters of a region server.
pub(super) const SERVER: &str = "Hadoop:service=HBase,name=RegionServer,sub=Server";
/// The counters of its regions.
pub(super) const REGIONS: &str = "Hadoop:service=HBase,name=RegionServer,sub=Regions";
/// The counters of its calls.
pub(super) const CALLS: &str = "Hadoop:service=HBase,name=RegionServer,sub=IPC";
/// Heap and garbage collections of the process.
pub(super) const JVM: &str = "Hadoop:service=HBase,name=JvmMetrics";
pub(super) const MACHINE: &str = "java.lang:type=OperatingSystem";
pub(super) const MASTER: &str = "Hadoop:service=HBase,name=Master,sub=Server";

/// A bean. A name that the version does not have is missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Bean(Json);

impl Bean {
    /// The path that asks for one bean.
    pub(super) fn path(name: &str) -> String {
        format!("/jmx?qry={name}")
    }

    /// The bean of an answer. An answer without it is an empty bean.
    pub(super) fn read(mut answer: Json) -> Self {
        Self(answer.pointer_mut("/beans/0").map(Json::take).unwrap_or_default())
    }

    /// The number of an attribute.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.0[name].as_f64()
    }

    /// The text of an attribute.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0[name].as_str()
    }

    /// The tables of a bean of regions with the number of regions and of reads of single rows.
    pub(super) fn tables(&self) -> impl Iterator<Item = (String, TableOfServer)> {
        let attributes = self.0.as_object().into_iter().flatten();
        let mut tables = std::collections::BTreeMap::<String, TableOfServer>::new();
        for (name, value) in attributes {
            let Some((table, metric)) = table_and_metric(name) else { continue };
            let of_table = tables.entry(table).or_default();
            match metric {
                "storeCount" => of_table.regions += 1.0,
                "getCount" => of_table.gets += value.as_f64().unwrap_or_default(),
                _ => {}
            }
        }
        tables.into_iter()
    }
}

/// A table on a region server.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TableOfServer {
    /// Its regions on this server.
    pub(super) regions: f64,
    /// Its reads of single rows since the regions were opened.
    pub(super) gets: f64,
}

/// Splits `Namespace_default_table_points_region_0cba_metric_storeCount`. The namespace `default` has no name in tables.
fn table_and_metric(attribute: &str) -> Option<(String, &str)> {
    let (place, metric) = attribute.rsplit_once("_metric_")?;
    let (table, _) = place.strip_prefix("Namespace_")?.rsplit_once("_region_")?;
    let (namespace, table) = table.split_once("_table_")?;
    Some((if namespace == "default" { table.to_owned() } else { format!("{namespace}:{table}") }, metric))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn regions_are_counted_by_table() {
        let bean = Bean::read(json!({ "beans": [{
            "name": REGIONS,
            "Namespace_default_table_my_table_region_0a_metric_storeCount": 1,
            "Namespace_default_table_my_table_region_0b_metric_storeCount": 2,
            "Namespace_default_table_my_table_region_0b_metric_getCount": 7,
            "Namespace_hbase_table_meta_region_1_metric_storeCount": 4,
        }] }));
        let tables: Vec<_> = bean.tables().collect();
        assert_eq!(tables[0], ("hbase:meta".to_owned(), TableOfServer { regions: 1.0, gets: 0.0 }));
        assert_eq!(tables[1], ("my_table".to_owned(), TableOfServer { regions: 2.0, gets: 7.0 }));
        assert_eq!(Bean::read(json!({ "beans": [] })).number("x"), None);
    }
}
