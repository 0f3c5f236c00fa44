//! Reads the next pieces of a file while the last one is stored.

use std::sync::mpsc;
use std::thread;

/// Calls `next` on a thread of its own until it returns `None` or an error. `take` gets the results in the same order. At most
/// `most` of them wait.
pub(super) fn read_ahead<T: Send, R>(
    most: usize,
    mut next: impl FnMut() -> anyhow::Result<Option<T>> + Send,
    take: impl FnOnce(&mut dyn FnMut() -> anyhow::Result<Option<T>>) -> R,
) -> R {
    thread::scope(|scope| {
        let (read, taken) = mpsc::sync_channel(most);
        scope.spawn(move || {
            while let Some(piece) = next().transpose() {
                let is_last = piece.is_err();
                // The receiver is gone after an error of its own.
                if read.send(piece).is_err() || is_last {
                    return;
                }
            }
        });
        take(&mut || taken.recv().ok().transpose())
    })
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    fn count_to(last: u32, error: bool) -> impl FnMut() -> anyhow::Result<Option<u32>> + Send {
        let mut given = 0;
        move || {
            given += 1;
            match given <= last {
                true => Ok(Some(given)),
                false if error => bail!("no more"),
                false => Ok(None),
            }
        }
    }

    #[test]
    fn pieces_come_in_order_and_an_error_after_them() {
        for error in [false, true] {
            let (pieces, end) = read_ahead(2, count_to(100, error), |next| {
                let mut pieces = Vec::new();
                loop {
                    match next() {
                        Ok(Some(piece)) => pieces.push(piece),
                        end => return (pieces, end),
                    }
                }
            });
            assert_eq!(pieces, (1..=100).collect::<Vec<_>>());
            assert_eq!(end.is_err(), error);
        }
    }

    #[test]
    fn the_receiver_may_stop_early() {
        assert_eq!(read_ahead(1, count_to(u32::MAX, false), |next| next().unwrap()), Some(1));
    }
}
