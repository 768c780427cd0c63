// SPDX-License-Identifier: GPL-2.0

//! The TCP connection between the two sides.

use std::collections::VecDeque;
use std::io::{
    self,
    ErrorKind,
    Read,
    Write, //
};
use std::net::{
    IpAddr,
    SocketAddr,
    TcpListener,
    TcpStream,
    ToSocketAddrs, //
};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{
    poll,
    PollFd,
    PollFlags,
    Timespec, //
};
use rustix::io::Errno;

use crate::failure::{
    Failure,
    Result, //
};
use crate::frame::{
    encode,
    Decoder, //
};
use crate::interrupt::Interrupt;
use crate::message::Message;
use crate::wait::Deadline;

/// How long the last words of a peer may take.
const MOMENT: Duration = Duration::from_secs(2);
/// How long a wait lasts before it looks at the clock again.
const TURN: Duration = Duration::from_millis(500);

/// One end of the TCP connection. All waits are bounded and end at Ctrl-C.
#[derive(Debug)]
pub(crate) struct Control {
    stream: TcpStream,
    decoder: Decoder,
    /// Messages that came before anybody asked for them.
    early: VecDeque<Message>,
    interrupt: Interrupt,
    timeout: Duration,
}

impl Control {
    /// Connects to a server.
    pub(crate) fn connect(
        host: &str,
        port: u16,
        timeout: Duration,
        interrupt: Interrupt,
    ) -> Result<Self> {
        let no_name = |error| Failure::Peer(format!("unknown host {host}: {error}"));
        let addresses = (host, port).to_socket_addrs().map_err(no_name)?;
        let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
        for address in addresses {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => return Self::new(stream, timeout, interrupt),
                Err(error) => last = error,
            }
            interrupt.check()?;
        }
        Err(Failure::Peer(format!(
            "cannot reach a server at {host} port {port}: {last}; is `rv-perf server` running \
             there?"
        )))
    }

    /// Wraps a connection that is established.
    pub(crate) fn new(stream: TcpStream, timeout: Duration, interrupt: Interrupt) -> Result<Self> {
        let set_up = || {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)
        };
        set_up().map_err(|error| Failure::Local(format!("TCP connection: {error}")))?;
        Ok(Self {
            stream,
            decoder: Decoder::default(),
            early: VecDeque::new(),
            interrupt,
            timeout,
        })
    }

    /// Returns our address in this connection.
    pub(crate) fn local_ip(&self) -> Result<IpAddr> {
        self.stream
            .local_addr()
            .map(|address| address.ip())
            .map_err(|error| Failure::Local(format!("TCP connection: {error}")))
    }

    /// Returns the time after which a wait gives up.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the flag that ends all waits.
    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &Message) -> Result<()> {
        let bytes = encode(message)?;
        let mut rest = bytes.as_slice();
        let deadline = Deadline::new(self.timeout);
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => self.wait(PollFlags::OUT, &deadline)?,
                    _ => return Err(gone(&error)),
                },
            }
        }
        Ok(())
    }

    /// Waits for the next message.
    pub(crate) fn receive(&mut self) -> Result<Message> {
        let deadline = Deadline::new(self.timeout);
        loop {
            if let Some(message) = self.poll()? {
                return Ok(message);
            }
            self.wait(PollFlags::IN, &deadline)?;
        }
    }

    /// Returns a message if there is one.
    ///
    /// An error that the peer reports comes back as a failure, as its disappearance does.
    pub(crate) fn poll(&mut self) -> Result<Option<Message>> {
        match self.early.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.read(),
        }
    }

    /// Notices that the peer gave up or went away, and keeps what else it says for later.
    pub(crate) fn watch(&mut self) -> Result<()> {
        // A peer that talks without end fills no memory: nobody has so much to say here.
        const MOST: usize = 16;
        while self.early.len() < MOST {
            match self.read()? {
                Some(message) => self.early.push_back(message),
                None => break,
            }
        }
        Ok(())
    }

    /// Reads the next message from the socket.
    fn read(&mut self) -> Result<Option<Message>> {
        loop {
            match self.decoder.next()? {
                Some(Message::Error(text)) => return Err(Failure::GaveUp(text)),
                Some(message) => return Ok(Some(message)),
                None => {}
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => {
                    return Err(Failure::Peer(
                        "the peer is gone: it closed the TCP connection".into(),
                    ))
                }
                Ok(n) => self.decoder.push(bytes.get(..n).unwrap_or_default()),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return Ok(None),
                    _ => return Err(gone(&error)),
                },
            }
        }
    }

    /// Ends a transfer that failed on one side on the other as well, for the same reason.
    ///
    /// A peer that fails also breaks the RDMA connection, which may be noticed first: then what it
    /// has to say is the better reason.
    pub(crate) fn say_goodbye<T>(&mut self, result: Result<T>) -> Result<T> {
        let failure = match result {
            Err(Failure::Peer(text)) => self.last_words().unwrap_or(Failure::Peer(text)),
            Err(failure) => failure,
            Ok(value) => return Ok(value),
        };
        // Whatever becomes of it, the failure above is the one to report.
        let _ =
            encode(&Message::Error(failure.to_string())).map(|bytes| self.stream.write_all(&bytes));
        Err(failure)
    }

    /// Waits a moment for the reason why the peer gave up.
    fn last_words(&mut self) -> Option<Failure> {
        let deadline = Deadline::new(MOMENT);
        loop {
            match self.read() {
                Err(failure @ Failure::GaveUp(_)) => return Some(failure),
                Err(_) => return None,
                Ok(Some(_)) => {}
                Ok(None) => self.wait(PollFlags::IN, &deadline).ok()?,
            }
        }
    }

    /// Waits until the socket is ready for something.
    fn wait(&self, flags: PollFlags, deadline: &Deadline) -> Result<()> {
        self.interrupt.check()?;
        deadline.check("the peer did not answer")?;
        wait_ready(&self.stream, flags, deadline.left().min(TURN))?;
        self.interrupt.check()
    }
}

/// Waits for the next client.
pub(crate) fn accept(
    listener: &TcpListener,
    interrupt: &Interrupt,
) -> Result<(TcpStream, SocketAddr)> {
    loop {
        interrupt.check()?;
        match listener.accept() {
            Ok(client) => return Ok(client),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait_ready(listener, PollFlags::IN, TURN)?;
            }
            Err(error) => return Err(Failure::Local(format!("cannot accept: {error}"))),
        }
    }
}

/// Waits until a socket is ready, a signal comes, or the time is over.
fn wait_ready(socket: &impl AsFd, flags: PollFlags, time: Duration) -> Result<()> {
    let time = Timespec::try_from(time)
        .map_err(|error| Failure::Local(format!("cannot wait: {error}")))?;
    let mut fds = [PollFd::new(socket, flags)];
    match poll(&mut fds, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(Failure::Local(format!("cannot wait: {error}"))),
    }
}

/// Says that the TCP connection broke.
fn gone(error: &io::Error) -> Failure {
    Failure::Peer(format!(
        "the peer is gone: the TCP connection broke ({error})"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(60);

    fn pair(timeout: Duration) -> (Control, Control) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = Control::connect("127.0.0.1", port, LONG, Interrupt::default()).unwrap();
        let (stream, _) = accept(&listener, &Interrupt::default()).unwrap();
        let server = Control::new(stream, timeout, Interrupt::default()).unwrap();
        (client, server)
    }

    #[test]
    fn messages_arrive_in_order() {
        let (mut client, mut server) = pair(LONG);
        assert_eq!(server.poll().unwrap(), None);
        client.send(&Message::Created).unwrap();
        client.send(&Message::Credit(3)).unwrap();
        assert_eq!(server.receive().unwrap(), Message::Created);
        assert_eq!(server.receive().unwrap(), Message::Credit(3));
        assert_eq!(server.local_ip().unwrap(), client.local_ip().unwrap());
    }

    #[test]
    fn watching_loses_nothing() {
        let (mut client, mut server) = pair(LONG);
        client.send(&Message::Created).unwrap();
        client.send(&Message::Arrived).unwrap();
        while server.early.is_empty() {
            server.watch().unwrap();
        }
        assert_eq!(server.receive().unwrap(), Message::Created);
        assert_eq!(server.receive().unwrap(), Message::Arrived);
        drop(client);
        while server.watch().is_ok() {}
    }

    #[test]
    fn an_error_of_the_peer_is_ours() {
        let (mut client, mut server) = pair(LONG);
        client.send(&Message::Error("out of luck".into())).unwrap();
        let failure = server.receive().unwrap_err();
        assert_eq!(failure.to_string(), "the peer gave up: out of luck");
        assert_eq!(failure.code(), 4);
    }

    #[test]
    fn the_reason_of_the_peer_is_the_better_one() {
        let (mut client, mut server) = pair(LONG);
        let full = Failure::Local("no space".into());
        assert!(server.say_goodbye::<()>(Err(full)).is_err());
        let lost = Failure::Peer("write 9 failed".into());
        let failure = client.say_goodbye::<()>(Err(lost)).unwrap_err();
        assert_eq!(failure.to_string(), "the peer gave up: no space");

        let (mut client, server) = pair(LONG);
        drop(server);
        let lost = Failure::Peer("write 9 failed".into());
        let failure = client.say_goodbye::<()>(Err(lost)).unwrap_err();
        assert_eq!(failure.to_string(), "write 9 failed");
    }

    #[test]
    fn a_peer_that_leaves_is_noticed() {
        let (client, mut server) = pair(LONG);
        drop(client);
        let failure = server.receive().unwrap_err();
        assert!(failure.to_string().contains("gone"), "{failure}");
    }

    #[test]
    fn a_silent_peer_times_out() {
        let (_client, mut server) = pair(SHORT);
        assert_eq!(server.receive().unwrap_err().code(), 5);
    }

    #[test]
    fn nobody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let failure = Control::connect("127.0.0.1", port, LONG, Interrupt::default()).unwrap_err();
        assert_eq!(failure.code(), 4);
        assert!(failure.to_string().contains("rv-perf server"), "{failure}");
    }
}
