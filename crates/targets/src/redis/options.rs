//! Keys of a scenario for driver `redis`: keys, values and commands.

use load::scenario::{Mix, Phase, Scenario, typed};
use serde::Deserialize;

use super::{Command, Content, GroupConfig, Keys, Pattern, Size};

/// Keys of an operation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationOptions {
    command: String,
    #[serde(default = "random_pattern")]
    pattern: String,
}

fn random_pattern() -> String {
    "R".to_owned()
}

/// Keys of data set, phase and mix.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupOptions {
    #[serde(default = "memtier_prefix")]
    prefix: String,
    #[serde(default = "memtier_keys")]
    keys: [u64; 2],
    base: Option<u64>,
    #[serde(default = "memtier_size")]
    size: SizeOption,
    #[serde(default = "random_content")]
    content: ContentOption,
    deviation: Option<f64>,
    median: Option<f64>,
    #[serde(default = "zipf_exponent")]
    exponent: f64,
    requests: Option<RequestsOption>,
    #[serde(default = "yes")]
    distinct_seeds: bool,
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "`size` is a number of bytes, `[least, most]`, `{ growing = [least, most] }` or `{ weighted = [[size, weight]] }`"
)]
enum SizeOption {
    Fixed(u32),
    Range([u32; 2]),
    Growing { growing: [u32; 2] },
    Weighted { weighted: Vec<[u32; 2]> },
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`content` is \"random\", \"memtier-x\" or `{ compressed = SHARE }`")]
enum ContentOption {
    Word(ContentWord),
    Share(ContentShare),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContentShare {
    compressed: f64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ContentWord {
    Random,
    MemtierX,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`requests` is a number or \"allkeys\"")]
enum RequestsOption {
    Count(u64),
    Word(String),
}

fn memtier_prefix() -> String {
    "memtier-".to_owned()
}

fn memtier_keys() -> [u64; 2] {
    [0, 10_000_000]
}

fn memtier_size() -> SizeOption {
    SizeOption::Fixed(32)
}

fn random_content() -> ContentOption {
    ContentOption::Word(ContentWord::Random)
}

fn zipf_exponent() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

/// The groups of a phase: keys of the data set, overridden by those of the phase, then of the mix.
pub(super) fn groups(scenario: &Scenario, phase: &Phase) -> std::result::Result<Vec<GroupConfig>, String> {
    // A separate check of `[dataset]` gives better suggestions.
    typed::<GroupOptions>(scenario.dataset.clone(), "[dataset]", &[])?;
    phase.mixes.iter().map(|mix| group(scenario, phase, mix)).collect()
}

fn group(scenario: &Scenario, phase: &Phase, mix: &Mix) -> std::result::Result<GroupConfig, String> {
    let place = phase.place();
    let own: GroupOptions = mix.options(&scenario.dataset, &place)?;
    let commands = mix
        .operations
        .iter()
        .map(|name| command(scenario, name))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let base = own.base.unwrap_or(own.keys[0]);
    let scaled = |key: u64| {
        base.saturating_add((key.saturating_sub(base) as f64 * scenario.head.scale).round() as u64)
    };
    let keys = Keys {
        prefix: own.prefix,
        min: scaled(own.keys[0]),
        max: scaled(own.keys[1]),
        deviation: own.deviation,
        median: own.median,
        exponent: own.exponent,
    };
    let clients = u64::from(mix.connections);
    let parallel = commands.first().is_some_and(|command| command.pattern == Pattern::Parallel);
    let requests = match own.requests {
        None => None,
        Some(RequestsOption::Count(count)) => Some(scenario.scaled(count)),
        Some(RequestsOption::Word(word)) if word == "allkeys" => {
            let range = keys.max - keys.min;
            Some(if parallel { range / clients + 1 } else { range })
        }
        Some(RequestsOption::Word(word)) => {
            return Err(format!("{place}: requests = \"{word}\"; use a number or \"allkeys\""));
        }
    };
    if requests.is_none() && phase.duration.is_none() {
        return Err(format!("{place}: it has neither `duration` nor `requests` and would never end"));
    }
    Ok(GroupConfig {
        connections: mix.connections,
        commands,
        keys,
        size: match own.size {
            SizeOption::Fixed(size) => Size::Fixed(size),
            SizeOption::Range([min, max]) => Size::Random(min, max),
            SizeOption::Growing { growing: [min, max] } => Size::Growing(min, max),
            SizeOption::Weighted { weighted } => {
                Size::Weighted(weighted.into_iter().map(|[s, w]| (s, w)).collect())
            }
        },
        content: match own.content {
            ContentOption::Word(ContentWord::Random) => Content::Random,
            ContentOption::Word(ContentWord::MemtierX) => Content::MemtierX,
            ContentOption::Share(ContentShare { compressed: share @ 0.0..=1.0 }) => {
                Content::Compressed((share * 1e3).round() as u16)
            }
            ContentOption::Share(ContentShare { compressed }) => {
                return Err(format!("{place}: content compressed = {compressed}; it is a share, 0 to 1"));
            }
        },
        requests,
        distinct_seeds: own.distinct_seeds,
        // Seed 1 gives memtier's own sequence.
        seed: (scenario.head.seed as u32).wrapping_sub(1),
    })
}

fn command(scenario: &Scenario, name: &str) -> std::result::Result<Command, String> {
    let operation = scenario.operation(name).ok_or_else(|| format!("operation `{name}` is not there"))?;
    let own: OperationOptions = operation.options()?;
    Ok(Command {
        class: scenario.class_of(name),
        text: own.command,
        ratio: operation.weight,
        pattern: own.pattern.parse().map_err(|e| format!("{}: {e}", operation.place()))?,
    })
}
