//! One HTTP/1.1 connection: a request, an answer, the end.

use super::text::CONTENT_TYPE;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Longest request.
const REQUEST_BYTES: usize = 8 << 10;
/// Longest time for the client to send the request, and to receive the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time during which further input is read and discarded, so that a reset does not destroy the answer.
const LINGER: Duration = Duration::from_secs(1);

pub struct HttpClient {
    stream: TcpStream,
    state: ClientState,
    deadline: Instant,
}

enum ClientState {
    Requesting(Vec<u8>),
    /// Answer, and number of bytes written.
    Answering(Vec<u8>, usize),
    Lingering,
    Gone,
}

impl HttpClient {
    pub fn new(stream: TcpStream) -> Self {
        HttpClient { stream, state: ClientState::Requesting(Vec::new()), deadline: Instant::now() + PATIENCE }
    }

    pub fn is_gone(&self) -> bool {
        matches!(self.state, ClientState::Gone)
    }

    /// Time at which the connection is closed.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// File descriptor to wait for, and whether to wait for writing.
    pub fn waits(&self) -> (BorrowedFd<'_>, bool) {
        (self.stream.as_fd(), matches!(self.state, ClientState::Answering(..)))
    }

    /// Makes progress without blocking.
    pub fn turn(&mut self, metrics: &mut dyn FnMut() -> String) {
        if Instant::now() >= self.deadline {
            self.state = ClientState::Gone;
        }
        if let ClientState::Requesting(request) = &mut self.state {
            match read(&mut self.stream, request) {
                ReadOutcome::All => {
                    let answer = answer(request, metrics);
                    self.deadline = Instant::now() + PATIENCE;
                    self.state = ClientState::Answering(answer, 0);
                }
                ReadOutcome::Part => {}
                ReadOutcome::Closed => self.state = ClientState::Gone,
            }
        }
        if let ClientState::Answering(answer, written) = &mut self.state {
            match self.stream.write(&answer[*written..]) {
                Ok(0) => self.state = ClientState::Gone,
                Ok(bytes) => {
                    *written += bytes;
                    if *written == answer.len() {
                        let closed = self.stream.shutdown(Shutdown::Write);
                        self.deadline = Instant::now() + LINGER;
                        self.state = if closed.is_ok() { ClientState::Lingering } else { ClientState::Gone };
                    }
                }
                Err(error) if is_later(&error) => {}
                Err(_) => self.state = ClientState::Gone,
            }
        }
        if matches!(self.state, ClientState::Lingering) {
            let mut rest = [0; 4096];
            match self.stream.read(&mut rest) {
                Ok(0) => self.state = ClientState::Gone,
                Ok(_) => {}
                Err(error) if is_later(&error) => {}
                Err(_) => self.state = ClientState::Gone,
            }
        }
    }
}

enum ReadOutcome {
    /// All headers arrived, or the limit was reached.
    All,
    Part,
    /// The client closed the connection.
    Closed,
}

fn is_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn read(stream: &mut TcpStream, request: &mut Vec<u8>) -> ReadOutcome {
    let mut bytes = [0; 2048];
    match stream.read(&mut bytes) {
        Ok(0) => return ReadOutcome::Closed,
        Ok(count) => request.extend_from_slice(&bytes[..count]),
        Err(error) if is_later(&error) => return ReadOutcome::Part,
        Err(_) => return ReadOutcome::Closed,
    }
    let is_whole =
        request.windows(4).any(|four| four == b"\r\n\r\n") || request.windows(2).any(|two| two == b"\n\n");
    if is_whole || request.len() > REQUEST_BYTES { ReadOutcome::All } else { ReadOutcome::Part }
}

/// Returns the answer to a request. Only its first line counts; other headers do not change the answer.
fn answer(request: &[u8], metrics: &mut dyn FnMut() -> String) -> Vec<u8> {
    const PLAIN: &str = "text/plain; charset=utf-8";
    if request.len() > REQUEST_BYTES {
        return written("431 Request Header Fields Too Large", PLAIN, "", "the request is too long\n", true);
    }
    let line = request.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let words: Vec<&str> = line.trim_end_matches('\r').split(' ').collect();
    let [method, target, version] = words[..] else {
        return written("400 Bad Request", PLAIN, "", "not an HTTP/1.1 request\n", true);
    };
    if !version.starts_with("HTTP/1.") {
        return written("400 Bad Request", PLAIN, "", "not an HTTP/1.1 request\n", true);
    }
    let has_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => {
            return written(
                "405 Method Not Allowed",
                PLAIN,
                "Allow: GET, HEAD\r\n",
                "metrics are read-only: use GET\n",
                true,
            );
        }
    };
    match target.split('?').next().unwrap_or_default() {
        "/metrics" => written("200 OK", CONTENT_TYPE, "", &metrics(), has_body),
        "/" => written("200 OK", PLAIN, "", "onbeat: metrics are at /metrics\n", has_body),
        _ => written("404 Not Found", PLAIN, "", "not found: metrics are at /metrics\n", has_body),
    }
}

fn written(status: &str, content: &str, more: &str, body: &str, has_body: bool) -> Vec<u8> {
    let length = body.len();
    let body = if has_body { body } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\
         X-Content-Type-Options: nosniff\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::answer;

    fn said(request: &[u8]) -> String {
        String::from_utf8(answer(request, &mut || "one 1\n# EOF\n".to_string())).expect("text")
    }

    #[test]
    fn requests_are_answered() {
        let cases: &[(&[u8], &str, &str)] = &[
            (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", "one 1\n# EOF\n"),
            (b"GET /metrics?x=1 HTTP/1.0\n\n", "200 OK", "# EOF\n"),
            (b"HEAD /metrics HTTP/1.1\r\n\r\n", "200 OK", "\r\n\r\n"),
            (b"GET / HTTP/1.1\r\n\r\n", "200 OK", "/metrics\n"),
            (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", "404 Not Found", "at /metrics\n"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed", "GET\n"),
            (b"GET /metrics\r\n\r\n", "400 Bad Request", "\n"),
            (b"\x16\x03\x01\x02\x00\n\n", "400 Bad Request", "\n"),
            (b"GET /metrics HTTP/2\r\n\r\n", "400 Bad Request", "\n"),
            (&[b'a'; 9000], "431 Request Header", "\n"),
        ];
        for (request, status, end) in cases {
            let answer = said(request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.ends_with(end), "{answer}");
        }
    }
}
