//! The endpoint, in its own process, so that its work is not counted as a contender's. It
//! keeps connections open, supports http and https, and counts requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::replies::{BURST_TOKENS, Pace, ROUNDS, Reply, STREAMED_TOKENS, TOKEN_INTERVAL};

/// The requests since the last query.
#[derive(Clone, Copy, Default)]
pub(crate) struct RequestStats {
    /// Connections that were accepted.
    pub connections: u64,
    /// Requests that were read whole.
    pub requests: u64,
    /// Bytes of the request bodies.
    pub body_bytes: u64,
    /// The sum of the times from the last byte of a request to the last byte of its reply, in
    /// milliseconds.
    pub served_ms: f64,
}

/// The server process; killed on drop.
pub(crate) struct Server {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// The port for http.
    pub http_port: u16,
    /// The port for https.
    pub https_port: u16,
}

impl Server {
    /// Starts the server: this program with `--serve`.
    pub(crate) fn start() -> io::Result<Server> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let commands = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let answers = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut server = Server {
            child,
            commands,
            answers: BufReader::new(answers),
            http_port: 0,
            https_port: 0,
        };
        let ports = server.numbers()?;
        let port = |index: usize| u16::try_from(ports[index]).map_err(io::Error::other);
        (server.http_port, server.https_port) = (port(0)?, port(1)?);
        Ok(server)
    }

    /// The requests since the last call.
    pub(crate) fn stats(&mut self) -> io::Result<RequestStats> {
        self.commands.write_all(b"stats\n")?;
        let numbers = self.numbers()?;
        Ok(RequestStats {
            connections: numbers[0],
            requests: numbers[1],
            body_bytes: numbers[2],
            served_ms: Duration::from_nanos(numbers[3]).as_secs_f64() * 1e3,
        })
    }

    fn numbers(&mut self) -> io::Result<[u64; 4]> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let mut numbers = [0; 4];
        for (number, word) in numbers.iter_mut().zip(line.split_whitespace()) {
            *number = word.parse().map_err(io::Error::other)?;
        }
        if line.is_empty() {
            return Err(io::Error::other("the server has exited"));
        }
        Ok(numbers)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file of the test suite's certificates for `localhost` and 127.0.0.1.
pub(crate) fn certificate_file(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/data/tls").join(name)
}

#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
    body_bytes: AtomicU64,
    served_nanoseconds: AtomicU64,
    /// Requests whose reply is not yet complete.
    open: AtomicU64,
}

struct Endpoint {
    short: Reply,
    streamed: Reply,
    burst: Reply,
    calls: Vec<Reply>,
    scripts: Vec<Reply>,
    counts: Counts,
}

/// Runs the server: prints its ports, then the counts for each line of standard input, until
/// its end.
pub(crate) fn serve() -> io::Result<()> {
    let endpoint = Arc::new(Endpoint {
        short: Reply::short(),
        streamed: Reply::words(STREAMED_TOKENS, Pace::ByToken),
        burst: Reply::words(BURST_TOKENS, Pace::AtOnce),
        calls: (0..ROUNDS).map(Reply::reading_call).collect(),
        scripts: (0..ROUNDS).map(Reply::script_call).collect(),
        counts: Counts::default(),
    });
    let http = TcpListener::bind("127.0.0.1:0")?;
    let https = TcpListener::bind("127.0.0.1:0")?;
    let tls = Arc::new(tls_config().map_err(io::Error::other)?);
    println!("{} {}", http.local_addr()?.port(), https.local_addr()?.port());
    let plain = Arc::clone(&endpoint);
    thread::spawn(move || accept(&http, &plain, Ok));
    let secret = Arc::clone(&endpoint);
    thread::spawn(move || {
        accept(&https, &secret, move |stream| {
            let connection = ServerConnection::new(Arc::clone(&tls)).map_err(io::Error::other)?;
            Ok(StreamOwned::new(connection, stream))
        });
    });
    for _ in io::stdin().lines() {
        println!("{}", endpoint.counts.take());
    }
    Ok(())
}

fn tls_config() -> Result<ServerConfig, Box<dyn std::error::Error + Send + Sync>> {
    let certificate = CertificateDer::from_pem_file(certificate_file("server.pem"))?;
    let key = PrivateKeyDer::from_pem_file(certificate_file("server.key"))?;
    let config = ServerConfig::builder().with_no_client_auth();
    Ok(config.with_single_cert(vec![certificate], key)?)
}

impl Counts {
    /// Returns the counts as a line and resets them. A client may exit before the server has
    /// counted its last write, so this waits for that.
    fn take(&self) -> String {
        while self.open.load(Ordering::SeqCst) > 0 {
            thread::sleep(Duration::from_micros(20));
        }
        let take = |count: &AtomicU64| count.swap(0, Ordering::SeqCst);
        format!(
            "{} {} {} {}",
            take(&self.connections),
            take(&self.requests),
            take(&self.body_bytes),
            take(&self.served_nanoseconds)
        )
    }
}

/// Starts a thread for each connection; `wrap` adds the protocol.
fn accept<S: Read + Write>(
    listener: &TcpListener,
    endpoint: &Arc<Endpoint>,
    wrap: impl Fn(TcpStream) -> io::Result<S> + Clone + Send + 'static,
) {
    for stream in listener.incoming().flatten() {
        endpoint.counts.connections.fetch_add(1, Ordering::SeqCst);
        // Each write is one packet, as from a server that streams.
        let _ = stream.set_nodelay(true);
        let (endpoint, wrap) = (Arc::clone(endpoint), wrap.clone());
        thread::spawn(move || {
            // A client that disconnects ends only its connection.
            let _ = wrap(stream).and_then(|stream| endpoint.serve_connection(stream));
        });
    }
}

impl Endpoint {
    /// Answers the requests of one connection until the client closes it.
    fn serve_connection(&self, mut stream: impl Read + Write) -> io::Result<()> {
        let mut read = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let request = loop {
                if let Some(request) = Request::parse(&read) {
                    break request;
                }
                let count = stream.read(&mut buffer)?;
                if count == 0 {
                    return Ok(());
                }
                read.extend_from_slice(&buffer[..count]);
            };
            let began = Instant::now();
            self.counts.open.fetch_add(1, Ordering::SeqCst);
            self.counts.requests.fetch_add(1, Ordering::SeqCst);
            let length = request.body.len() as u64;
            self.counts.body_bytes.fetch_add(length, Ordering::SeqCst);
            let result = write(&mut stream, self.reply(&request));
            let served = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.counts.served_nanoseconds.fetch_add(served, Ordering::SeqCst);
            let length = request.length;
            read.drain(..length);
            self.counts.open.fetch_sub(1, Ordering::SeqCst);
            result?;
        }
    }

    /// The first folder of the path selects the reply. In a run of many rounds, the number of
    /// tool results selects the round.
    fn reply(&self, request: &Request<'_>) -> &Reply {
        match request.scenario {
            "stream" => &self.streamed,
            "burst" => &self.burst,
            "loop" => self.calls.get(request.tool_result_count()).unwrap_or(&self.short),
            "scripts" => self.scripts.get(request.tool_result_count()).unwrap_or(&self.short),
            _ => &self.short,
        }
    }
}

fn write(stream: &mut impl Write, reply: &Reply) -> io::Result<()> {
    let began = Instant::now();
    for (piece, number) in reply.writes.iter().zip(0..) {
        // The system cannot sleep that briefly.
        while reply.pace == Pace::ByToken && began.elapsed() < TOKEN_INTERVAL * number {
            std::hint::spin_loop();
        }
        stream.write_all(piece)?;
    }
    stream.flush()
}

struct Request<'a> {
    scenario: &'a str,
    body: &'a [u8],
    /// Bytes of head and body.
    length: usize,
}

impl Request<'_> {
    /// Parses the first request, if it is complete.
    fn parse(read: &[u8]) -> Option<Request<'_>> {
        let head = find(read, b"\r\n\r\n")? + 4;
        let text = std::str::from_utf8(&read[..head]).ok()?;
        let length = text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse::<usize>().ok())?
        });
        let length = head + length.unwrap_or(0);
        Some(Request {
            scenario: text.split('/').nth(1).unwrap_or_default(),
            body: read.get(head..length)?,
            length,
        })
    }

    /// The number of tool results in the conversation.
    fn tool_result_count(&self) -> usize {
        let objects = self.body.split(|byte| *byte == b'{');
        let results = objects.filter(|object| find(object, br#""tool_call_id""#).is_some());
        results.count()
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}
