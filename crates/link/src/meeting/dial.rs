//! Calls the other end.

use super::{Meeting, Met, NoSession, random, send};
use crate::frame::{FrameReader, Head, LinkHello, Place};
use crate::socket::{LinkAddress, LinkSocket};
use crate::stream::{self, LinkStream};
use std::io::{self, ErrorKind};
use std::time::Duration;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(1);
/// Longest wait for an answer. The other end may have to part from an earlier session first.
const ANSWER: Duration = Duration::from_secs(5);

/// Opens both connections.
pub(super) fn meet(meeting: &Meeting, place: Place, address: &LinkAddress) -> Result<Met, NoSession> {
    let session = random();
    let (data, other) = call(meeting, &meeting.hello(true, session, place), address)?;
    if let Err(refusal) = meeting.check(&other) {
        return Err(NoSession::Ever(refusal.why));
    }
    let (control, _) = call(meeting, &meeting.hello(false, session, place), address)?;
    Ok(Met { data, control, other })
}

fn call(
    meeting: &Meeting,
    hello: &LinkHello,
    address: &LinkAddress,
) -> Result<(LinkStream, LinkHello), NoSession> {
    let socket = LinkSocket::connect(address, CONNECT)?;
    socket.set_read_timeout(Some(ANSWER))?;
    let security = &meeting.settings.security;
    let peer = security.peer().first().map_or("", String::as_str);
    let mut stream = stream::call(socket, security.identity().map(AsRef::as_ref), peer)
        .map_err(|error| meeting.unproved(&error))?;
    send(&mut stream, &Head::Hello(hello.clone()))?;
    // A caller hears here that its own certificate is not accepted.
    match read_one(&mut stream).map_err(|error| meeting.unproved(&error))? {
        Head::Hello(other) => Ok((stream, other)),
        Head::Refused(refusal) if refusal.may_retry => Err(NoSession::Yet(refusal.why)),
        Head::Refused(refusal) => Err(NoSession::Ever(refusal.why)),
        _ => Err(NoSession::Ever(format!("{} is not the end of a link", meeting.settings.peer.address()))),
    }
}

/// Reads the first frame, and no more: the next ones are the operator's.
fn read_one(stream: &mut LinkStream) -> io::Result<Head> {
    let mut reader = FrameReader::new(0);
    loop {
        // Byte by byte, so that nothing after the frame is taken.
        let read = match reader.fill(&mut io::Read::take(&mut *stream, 1)) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let text = format!("it did not answer within {} s: it may be no link", ANSWER.as_secs());
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
            read => read?,
        };
        if read == 0 {
            let text =
                "it closed the connection without an answer: if it has an `identity`, this end needs one too";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, text));
        }
        if let Some((head, _)) = reader.head(0)? {
            return Ok(head);
        }
    }
}
