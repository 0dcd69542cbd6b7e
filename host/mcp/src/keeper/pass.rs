//! Handing a program's sockets over.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// With what it begins that a program was started, or was not.
const OPEN: u8 = b'o';
const REFUSED: u8 = b'r';

/// What the host gets of a program.
pub(super) struct Open {
    /// The other end of its standard input and output.
    pub(super) stream: OwnedFd,
    /// Closed when nobody needs it any more.
    pub(super) life: OwnedFd,
}

/// What came over.
pub(super) enum Received {
    Open {
        stream: OwnedFd,
        life: OwnedFd,
    },
    /// The reason follows.
    Refused,
}

pub(super) fn send(over: impl AsFd, open: &Open) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [open.stream.as_fd(), open.life.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("there is no room for descriptors beside a message"));
    }
    // Without the flag a host that is gone would end this process by a signal.
    sendmsg(over, &[IoSlice::new(&[OPEN])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub(super) fn send_refusal(over: impl AsFd) -> io::Result<()> {
    let mut control = SendAncillaryBuffer::default();
    sendmsg(over, &[IoSlice::new(&[REFUSED])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub(super) fn receive(over: impl AsFd) -> io::Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut label = [0];
    let received = recvmsg(over, &mut [IoSliceMut::new(&mut label)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the process that starts programs is gone"));
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            descriptors.extend(more);
        }
    }
    let mut descriptors = descriptors.into_iter();
    match (label, descriptors.next(), descriptors.next()) {
        ([OPEN], Some(stream), Some(life)) => Ok(Received::Open { stream, life }),
        ([REFUSED], None, None) => Ok(Received::Refused),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "what came is not what was asked for")),
    }
}
