//! A disk that keeps nothing, so that the code that receives a stream can also verify one.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, DiskLock, EntryKind, LockError, OpenMode};

pub(super) struct Nowhere;

struct Gone;

impl Disk for Nowhere {
    fn open(&self, _path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        match mode {
            OpenMode::Create => Ok(Arc::new(Gone)),
            OpenMode::Read | OpenMode::Write => Err(ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }

    fn link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(ErrorKind::NotFound.into())
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn kind(&self, _path: &Path) -> io::Result<EntryKind> {
        Err(ErrorKind::NotFound.into())
    }

    fn list(&self, _dir: &Path) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn create_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _path: &Path) -> Result<Box<dyn DiskLock>, LockError> {
        Err(LockError::Io(ErrorKind::Unsupported.into()))
    }
}

impl DiskFile for Gone {
    fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        Ok(0)
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(0)
    }
}
