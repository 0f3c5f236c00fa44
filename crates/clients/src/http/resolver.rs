//! The addresses of the host of a request: looked up once, checked, and then connected to.

use std::io;
use std::sync::Arc;

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::outgoing::AllowedTargets;

/// A resolver that gives only addresses that are allowed; all of them without a list.
#[derive(Debug)]
pub(super) struct CheckedResolver {
    inner: DefaultResolver,
    targets: Option<Arc<AllowedTargets>>,
}

impl CheckedResolver {
    pub(super) fn new(targets: Option<Arc<AllowedTargets>>) -> Self {
        Self { inner: DefaultResolver::default(), targets }
    }
}

impl Resolver for CheckedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let found = self.inner.resolve(uri, config, timeout)?;
        let Some(targets) = &self.targets else { return Ok(found) };
        let chosen = targets.choose(uri.host().unwrap_or_default(), found.iter().copied());
        let chosen =
            chosen.map_err(|reason| Error::Io(io::Error::new(io::ErrorKind::PermissionDenied, reason)))?;
        let mut addresses = self.empty();
        chosen.into_iter().for_each(|address| addresses.push(address));
        Ok(addresses)
    }
}
