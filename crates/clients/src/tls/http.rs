//! TLS under the HTTP client. A connection without TLS notices a server that answers with it.

use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

use std::io::{Read as _, Write as _};

use super::client::TlsConfig;
use super::error::TlsFailure;
use super::stream::TlsStream;

/// Adds TLS to the connections of `https` addresses.
#[derive(Debug, Clone)]
pub(crate) struct TlsConnector(pub(crate) Option<TlsConfig>);

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = Either<Plain<In>, Encrypted<In>>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        let Some(transport) = chained else { return Ok(None) };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(Plain { transport, answered: false })));
        }
        let config = self.0.as_ref().ok_or(Error::Tls("this client has no options of TLS"))?;
        let host = details.uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let client = config.client(host).map_err(|error| Error::Other(Box::new(error)))?;
        let mut adapter = TransportAdapter::new(transport, details.current_time.clone());
        adapter.set_timeout(details.timeout);
        let stream = TlsStream::handshake(&client, adapter)?;
        let buffers =
            LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Either::B(Encrypted { buffers, stream })))
    }
}

/// A connection with TLS.
pub(crate) struct Encrypted<In: Transport> {
    buffers: LazyBuffers,
    stream: TlsStream<TransportAdapter<In>>,
}

impl<In: Transport> std::fmt::Debug for Encrypted<In> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encrypted").finish_non_exhaustive()
    }
}

impl<In: Transport> Transport for Encrypted<In> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.get_mut().set_timeout(timeout);
        self.stream.write_all(&self.buffers.output()[..amount])?;
        Ok(self.stream.flush()?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

/// A connection without TLS.
#[derive(Debug)]
pub(crate) struct Plain<In: Transport> {
    transport: In,
    /// The server has answered something.
    answered: bool,
}

impl<In: Transport> Transport for Plain<In> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.transport.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let has_more = self.transport.await_input(timeout)?;
        let input = self.transport.buffers().input();
        if !std::mem::replace(&mut self.answered, true) && TlsFailure::is_alert(input) {
            return Err(Error::Io(TlsFailure::Encrypted.into_io()));
        }
        Ok(has_more)
    }

    fn is_open(&mut self) -> bool {
        self.transport.is_open()
    }
}
