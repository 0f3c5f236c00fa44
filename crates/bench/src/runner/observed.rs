//! What a process observes during a phase: the sources that it samples, and the progress that it shows.

use load::engine::{Event, Segment};
use load::progress::Progress;
use load::sampling::{Host, Process, Source};
use load::scenario::Phase;
use load::server_process::ServerProcess;
use targets::driver::Driver;

/// The sources to sample each second during a phase. With several processes, the first one samples the shared sources.
pub(super) fn sources(
    driver: &dyn Driver,
    server: Option<&ServerProcess>,
    part: (u32, u32),
) -> Vec<Box<dyn Source>> {
    let name = if part.1 == 1 { "generator".to_owned() } else { format!("generator{}", part.0 + 1) };
    // This process exists.
    let own = Process::new(std::process::id(), &name).ok();
    let mut sources: Vec<Box<dyn Source>> =
        own.into_iter().map(|own| Box::new(own) as Box<dyn Source>).collect();
    if part.0 == 0 {
        let target = server.map(|server| Box::new(Process::of(server.clone(), "target")) as Box<dyn Source>);
        sources.extend(target);
        sources.push(Box::new(Host));
        sources.extend(driver.sources());
    }
    sources
}

/// Shows an event of a phase as progress.
pub(super) fn show(
    event: &Event,
    plan: &[Segment],
    connections: u32,
    phase: &Phase,
    progress: &Progress,
    segment: usize,
) {
    match event {
        Event::Connecting(opened) => {
            progress.update(|| format!("{}: {opened} of {connections} connections open", phase.name));
        }
        Event::Started { segment, .. } => {
            progress
                .step(format!("{}: {connections} connections open, the load begins", plan[*segment].name));
        }
        Event::Second(second) => {
            let segment = &plan[segment];
            progress.second(second, segment.warmup.saturating_add(segment.duration));
        }
        Event::Note(text) => progress.step(text.clone()),
        Event::Tick => {}
    }
}
