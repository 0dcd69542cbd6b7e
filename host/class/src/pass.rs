//! Handing open sockets to another process.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// Hands `open` over, with a byte that says what it is for. A byte has to go with it:
/// over a stream, descriptors travel beside data (`unix(7)`).
pub(crate) fn send(over: impl AsFd, label: u8, open: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [open];
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("there is no room for a descriptor beside a message"));
    }
    // Without the flag a process that is gone would end this one by a signal.
    sendmsg(over, &[IoSlice::new(&[label])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Takes what was handed over by [`send`]. None: the other side is gone, or has closed.
pub(crate) fn receive(over: impl AsFd) -> io::Result<Option<(u8, OwnedFd)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    // One byte at a time: the system never joins two messages that have descriptors, and
    // so each byte comes with its own.
    let mut label = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(over, &mut [IoSliceMut::new(&mut label)], &mut control, flags)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut open = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            // Any beyond the first is closed here.
            open = descriptors.into_iter().next();
        }
    }
    let [label] = label;
    open.map(|open| Some((label, open))).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no descriptor came"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn each_socket_comes_with_its_label_and_works() {
        let (here, there) = UnixStream::pair().unwrap();
        let mut kept = Vec::new();
        for label in [b'r', b'o', b'r'] {
            let (mine, theirs) = UnixStream::pair().unwrap();
            send(&here, label, theirs.as_fd()).unwrap();
            kept.push(mine);
        }
        drop(here);
        for (n, label) in [b'r', b'o', b'r'].into_iter().enumerate() {
            let (got, open) = receive(&there).unwrap().unwrap();
            assert_eq!(got, label);
            UnixStream::from(open).write_all(&[n as u8]).unwrap();
            let mut byte = [9];
            kept[n].read_exact(&mut byte).unwrap();
            assert_eq!(usize::from(byte[0]), n);
        }
        assert!(receive(&there).unwrap().is_none(), "the other side is gone");
    }

    #[test]
    fn what_is_gone_and_what_is_no_socket_are_errors() {
        let (here, there) = UnixStream::pair().unwrap();
        drop(there);
        let (mine, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(send(&here, b'r', mine.as_fd()).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        let (mut here, there) = UnixStream::pair().unwrap();
        here.write_all(b"r").unwrap();
        assert_eq!(receive(&there).unwrap_err().kind(), io::ErrorKind::InvalidData, "a byte alone");
    }
}
