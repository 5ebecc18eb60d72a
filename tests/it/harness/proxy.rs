//! Proxies on loopback: HTTP (tunnels and absolute form) and SOCKS 5. They connect every client to
//! one local port, whatever host is requested.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A proxy that records its requests.
pub(crate) struct Proxy {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct Rules {
    /// The port that the proxy connects to.
    target: u16,
    /// `user:password`, for SOCKS.
    login: Option<String>,
    /// The value of the `Proxy-Authorization` header, for HTTP.
    header: Option<String>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Starts a proxy that connects to this port.
    pub(crate) fn start(target: u16) -> Proxy {
        Proxy::listen(target, None)
    }

    /// Starts a proxy that requires `user:password`; HTTP clients send it in base64.
    pub(crate) fn requiring_login(target: u16, login: &str, base64: &str) -> Proxy {
        Proxy::listen(target, Some((login.into(), format!("Basic {base64}"))))
    }

    /// Starts a proxy that answers any request with these bytes, then closes the connection or
    /// stays silent.
    pub(crate) fn replying_with(answer: &[u8], then_close: bool) -> Proxy {
        let answer = answer.to_vec();
        Proxy::serve(move |mut stream, requests| {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer)?;
            record(&requests, &String::from_utf8_lossy(&buffer[..count]));
            stream.write_all(&answer)?;
            if then_close {
                return stream.shutdown(Shutdown::Both);
            }
            io::copy(&mut stream, &mut io::sink()).map(drop)
        })
    }

    /// The proxy's URL with this scheme; `login` is empty or `user:password@`.
    pub(crate) fn url(&self, scheme: &str, login: &str) -> String {
        format!("{scheme}://{login}{}", self.address)
    }

    /// The port that the proxy listens on.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The requests so far, one line each: `CONNECT llm.test:443`.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn listen(target: u16, login: Option<(String, String)>) -> Proxy {
        Proxy::serve(move |stream, requests| {
            let (login, header) = login.clone().unzip();
            let rules = Rules { target, login, header, requests };
            let mut first = [0];
            match stream.peek(&mut first)? {
                1 if first == [5] => rules.socks(stream),
                _ => rules.http(stream),
            }
        })
    }

    fn serve(
        serve: impl Fn(TcpStream, Arc<Mutex<Vec<String>>>) -> io::Result<()> + Send + Sync + 'static,
    ) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (serve, shared) = (Arc::new(serve), Arc::clone(&requests));
        // The thread runs until the tests end; an idle listener does no harm.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (serve, requests) = (Arc::clone(&serve), Arc::clone(&shared));
                thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    let _ = serve(stream, requests);
                });
            }
        });
        Proxy { address, requests }
    }
}

fn record(requests: &Mutex<Vec<String>>, line: &str) {
    requests.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_string());
}

impl Rules {
    fn http(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut server: Option<TcpStream> = None;
        loop {
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                if line == "\r\n" {
                    break;
                }
                head.push(line.trim_end().to_string());
            }
            let is_login_header =
                |line: &String| line.to_ascii_lowercase().starts_with("proxy-authorization: ");
            let given = head.iter().find(|line| is_login_header(line)).cloned();
            let mut words = head[0].split(' ');
            let (method, address) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            record(&self.requests, &format!("{method} {address}"));
            let is_authorized = match &self.header {
                None => true,
                Some(header) => given.is_some_and(|line| line.ends_with(header.as_str())),
            };
            if !is_authorized {
                let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\n\
                    Proxy-Authenticate: Basic realm=\"tests\"\r\nContent-Length: 0\r\n\r\n";
                return stream.write_all(refusal.as_bytes());
            }
            if method == "CONNECT" {
                stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
                return self.relay(reader.into_inner());
            }
            let Some(path) = address
                .strip_prefix("http://")
                .and_then(|rest| rest.find('/').map(|at| &rest[at..]))
            else {
                return stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            };
            let mut text = format!("{method} {path} HTTP/1.1\r\n");
            let mut length = 0;
            for line in head.iter().skip(1).filter(|line| !is_login_header(line)) {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                    length = value.parse().unwrap_or(0);
                }
                text += line;
                text += "\r\n";
            }
            text += "\r\n";
            let server = match &mut server {
                Some(server) => server,
                None => {
                    let new = TcpStream::connect(("127.0.0.1", self.target))?;
                    let (mut from, mut to) = (new.try_clone()?, stream.try_clone()?);
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                    server.insert(new)
                }
            };
            server.write_all(text.as_bytes())?;
            io::copy(&mut (&mut reader).take(length), server)?;
        }
    }

    fn socks(&self, mut stream: TcpStream) -> io::Result<()> {
        let methods = read_counted(&mut stream, 1)?;
        match &self.login {
            None => stream.write_all(&[5, 0])?,
            Some(_) if !methods.contains(&2) => {
                record(&self.requests, "no login");
                return stream.write_all(&[5, 0xff]);
            }
            Some(login) => {
                stream.write_all(&[5, 2])?;
                let user = read_counted(&mut stream, 1)?;
                let password = read_counted(&mut stream, 0)?;
                let given =
                    [user, password].map(|part| String::from_utf8_lossy(&part).into_owned());
                if given.join(":") != *login {
                    record(&self.requests, "wrong login");
                    return stream.write_all(&[1, 1]);
                }
                stream.write_all(&[1, 0])?;
            }
        }
        let mut head = [0; 4];
        stream.read_exact(&mut head)?;
        let host = match head[3] {
            3 => String::from_utf8_lossy(&read_counted(&mut stream, 0)?).into_owned(),
            1 => {
                let mut address = [0; 4];
                stream.read_exact(&mut address)?;
                std::net::Ipv4Addr::from(address).to_string()
            }
            _ => {
                let mut address = [0; 16];
                stream.read_exact(&mut address)?;
                std::net::Ipv6Addr::from(address).to_string()
            }
        };
        let mut port = [0; 2];
        stream.read_exact(&mut port)?;
        record(&self.requests, &format!("SOCKS {host} {}", u16::from_be_bytes(port)));
        stream.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 80])?;
        self.relay(stream)
    }

    /// Copies bytes in both directions until one side ends.
    fn relay(&self, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(("127.0.0.1", self.target))?;
        let (mut from, mut to) = (server.try_clone()?, client.try_clone()?);
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
        let (mut client, mut server) = (client, server);
        let result = io::copy(&mut client, &mut server).map(drop);
        let _ = server.shutdown(Shutdown::Both);
        result
    }
}

/// Reads length-prefixed bytes, after skipping some bytes.
fn read_counted(stream: &mut TcpStream, skipped: usize) -> io::Result<Vec<u8>> {
    let mut head = [0; 2];
    stream.read_exact(&mut head[..=skipped])?;
    let mut bytes = vec![0; usize::from(head[skipped])];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
