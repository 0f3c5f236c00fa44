//! The part of a session that serves subscriptions of alarms.

use std::sync::Arc;

use tokio::time::Instant;

use super::alarm_queries::{AlarmAnswer, AlarmAsk};
use super::outbound::Outbound;
use super::session::{End, SocketSession};
use crate::error::ApiError;

impl SocketSession<'_> {
    /// Serves a command about alarms.
    pub(super) async fn alarms(&mut self, ask: AlarmAsk, out: &mut Outbound) -> Result<(), End> {
        let (id, kind) = (ask.id, ask.kind());
        self.end_query(id);
        let done = self.begin_alarms(ask).await;
        self.reply(id, kind, done, out).await
    }

    /// Starts a subscription. Returns the message with its first answer.
    async fn begin_alarms(&mut self, ask: AlarmAsk) -> Result<String, ApiError> {
        // A change after this call is seen, so the first answer and the later ones have no gap between them.
        if self.alarm_feed.is_none() {
            self.alarm_feed = Some(self.state.hub.alarm_feed(self.session.caller())?);
        }
        let begun = Instant::now();
        let AlarmAnswer { message, hash } = self.ask(ask.clone()).await?;
        self.queries.put_alarms(ask, hash, begun.elapsed())?;
        Ok(message)
    }

    /// Asks again. Returns the message if the answer has changed.
    pub(super) async fn refresh_alarms(&mut self, ask: AlarmAsk) -> Result<Option<String>, ApiError> {
        let id = ask.id;
        let AlarmAnswer { message, hash } = self.ask(ask).await?;
        Ok(self.queries.is_new_answer(id, hash).then_some(message))
    }

    /// Asks. The answer has only what is durable.
    async fn ask(&self, ask: AlarmAsk) -> Result<AlarmAnswer, ApiError> {
        let (hub, caller) = (Arc::clone(&self.state.hub), self.session.caller().clone());
        let hashes = self.queries.hashes();
        let answer = self.state.reads.run(move || ask.answer(&hub, &caller, &hashes)).await??;
        self.state.hub.alarms_durable().await?;
        Ok(answer)
    }
}
