//! Reading a file while what was read before is on its way.

use std::sync::mpsc;
use std::thread;

/// Calls `next` on a thread of its own until it says that there is no more, or fails; `take` gets what it gave, in that order. At most `most`
/// pieces wait.
pub(super) fn ahead<T: Send, R>(
    most: usize,
    mut next: impl FnMut() -> anyhow::Result<Option<T>> + Send,
    take: impl FnOnce(&mut dyn FnMut() -> anyhow::Result<Option<T>>) -> R,
) -> R {
    thread::scope(|scope| {
        let (read, taken) = mpsc::sync_channel(most);
        scope.spawn(move || {
            while let Some(piece) = next().transpose() {
                let is_last = piece.is_err();
                // Nobody takes any more after an error of theirs.
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
            let (pieces, end) = ahead(2, count_to(100, error), |next| {
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
    fn whoever_takes_may_stop() {
        assert_eq!(ahead(1, count_to(u32::MAX, false), |next| next().unwrap()), Some(1));
    }
}
