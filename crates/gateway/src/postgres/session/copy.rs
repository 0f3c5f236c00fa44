//! COPY (query) TO STDOUT.

use pgwire::messages::PgWireBackendMessage as BackendMessage;
use pgwire::messages::copy::{CopyDone, CopyOutResponse};
use wire::postgres::ValueFormat;

use super::super::copy_rows::CopyWriter;
use super::super::copy_statement::{CopyFormat, CopyOptions};
use super::super::portal::Rows;
use super::super::rows::Page;
use super::super::values::{description, fields};
use super::super::wire::Ended;
use super::{Failed, Session};

impl Session {
    /// Sends all rows of a query in the format of the options. It takes the next batch after it has sent the last one.
    pub(super) async fn copy_out(&mut self, rows: &mut Rows, options: &CopyOptions) -> Result<(), Failed> {
        let is_binary = options.format == CopyFormat::Binary;
        let format = if is_binary { ValueFormat::Binary } else { ValueFormat::Text };
        let fields = fields(rows.schema(), &[format])?;
        let columns = description(&fields, rows.headings()).fields;
        let names: Vec<String> = columns.into_iter().map(|field| field.name).collect();
        let mut writer = CopyWriter::new(options, &names)?;
        let code = i8::from(is_binary);
        // A statement has at most 1,664 columns, and a table fewer than 32,768.
        let count = names.len() as i16;
        let formats = vec![code.into(); names.len()];
        self.wire.push(BackendMessage::CopyOutResponse(CopyOutResponse::new(code, count, formats)))?;
        if options.header {
            self.wire.push_copied(|out| {
                writer.write_names(&names, out);
                Ok(())
            })?;
        }
        let mut sent = 0;
        while rows.is_at_hand() || self.unless_cancelled(rows.advance()).await?? {
            let Some(batch) = rows.take(usize::MAX) else { continue };
            let mut page = Page::new(&batch, &fields);
            for row in 0..page.rows() {
                self.wire.push_copied(|out| writer.write(&mut page, row, out))?;
                if self.wire.is_full() {
                    self.wire.flush().await.map_err(Ended::from)?;
                    // As for other rows: a large batch does not delay a cancellation.
                    self.unless_cancelled(std::future::ready(())).await?;
                }
            }
            sent += page.rows();
        }
        if is_binary {
            self.wire.push_copied(|out| {
                writer.end(out);
                Ok(())
            })?;
        }
        self.wire.push(BackendMessage::CopyDone(CopyDone::new()))?;
        self.complete(format!("COPY {sent}"))?;
        Ok(())
    }
}
