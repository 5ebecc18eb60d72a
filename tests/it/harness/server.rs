//! The scripted endpoint on loopback. It answers requests in the order of the script, records
//! them, and fails the test if a request is unexpected or missing.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::reply::Reply;
use super::request::Request;
use super::wire::Response;
use super::{CANARY, DEFAULT_TIMEOUT, MODEL, history};

/// How long the connections of a program that has ended may take to close.
const DISCONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// A scripted endpoint. Dropping it does the same as [`Server::finish`].
pub(crate) struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Keeps the port of [`Server::refusing_connections`] or [`Server::with_full_backlog`]
    /// reserved.
    _reserved: Vec<OwnedFd>,
    listening: bool,
}

/// State shared by the server's threads and the test.
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    script: Script,
    requests: Vec<Request>,
    /// Problems that make the test fail.
    problems: Vec<String>,
    checks_history: bool,
    /// Whether `GET /v1/models` is no part of the script: questions and conversations request the
    /// models at their start.
    lists_models: bool,
    /// Number of tool call ids assigned so far.
    calls: usize,
    /// Open connections, to wake the threads that wait on them.
    open_streams: Vec<TcpStream>,
    /// Number of connections so far.
    connections: usize,
    /// Number of connections being served.
    open: usize,
    /// Whether the accepting thread has ended.
    stopping: bool,
    /// Client address of the connection that makes the accepting thread end.
    stopping_peer: Option<SocketAddr>,
}

enum Script {
    InOrder(VecDeque<Reply>),
    Always(Reply),
    All(Reply),
    /// Sent on every connection before a request is read.
    Unsolicited(Reply),
}

impl Server {
    /// Starts a server that sends these replies in order.
    pub(crate) fn start(script: impl IntoIterator<Item = Reply>) -> Server {
        Server::listen(Script::InOrder(script.into_iter().collect()))
    }

    /// Starts a server that answers any number of requests, but for those of models.
    pub(crate) fn always(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        Server::listen(Script::Always(Reply::from_fn(answer)))
    }

    /// Starts a server that answers any number of requests, also those of models.
    pub(crate) fn of_all_requests(
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Server {
        Server::listen(Script::All(Reply::from_fn(answer)))
    }

    /// Starts a server that sends the same reply on every connection without reading a request: for
    /// [`Reply::raw`] and [`Reply::empty`].
    pub(crate) fn unsolicited(reply: Reply) -> Server {
        Server::listen(Script::Unsolicited(reply))
    }

    /// An address that refuses connections.
    pub(crate) fn refusing_connections() -> Server {
        // The client's end of a connection has a port that is in use and does not listen. Both
        // ends stay open: a closed connection would free its port.
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let far = listener.local_addr().expect("a bound socket has an address");
        let near = TcpStream::connect(far).expect("the listener has room");
        let (far, address) = listener.accept().expect("the connection is made");
        let shared = Arc::new(Shared::new(Script::InOrder(VecDeque::new())));
        Server { shared, address, _reserved: vec![near.into(), far.into()], listening: false }
    }

    /// An address where connections are neither refused nor established, because the backlog is
    /// full.
    pub(crate) fn with_full_backlog() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        // SAFETY: a system call on a descriptor that is open.
        let status = unsafe { libc::listen(listener.as_raw_fd(), 0) };
        assert_eq!(status, 0, "the backlog can be changed");
        let timeout = Duration::from_millis(200);
        let mut reserved = vec![OwnedFd::from(listener)];
        while let Ok(waiting) = TcpStream::connect_timeout(&address, timeout) {
            reserved.push(waiting.into());
            assert!(reserved.len() < 100, "the backlog does not fill up");
        }
        let shared = Arc::new(Shared::new(Script::InOrder(VecDeque::new())));
        Server { shared, address, _reserved: reserved, listening: false }
    }

    /// Accepts histories that strict providers refuse.
    pub(crate) fn without_history_check(self) -> Server {
        self.shared.lock().checks_history = false;
        self
    }

    /// The base URL: `http://127.0.0.1:PORT/v1`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The port, for URLs of another form.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The requests received so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// Number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// Waits until this many requests have arrived.
    #[track_caller]
    pub(crate) fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        let arrived = self.shared.wait(DEFAULT_TIMEOUT, |state| state.requests.len() >= count);
        assert!(arrived, "{count} requests did not arrive{}", self.shared.transcript());
        self.requests()
    }

    /// Waits until the program has closed all its connections.
    #[track_caller]
    pub(crate) fn wait_for_disconnect(&self) {
        let closed = self.shared.wait(DEFAULT_TIMEOUT, |state| state.open == 0);
        assert!(closed, "a connection stays open{}", self.shared.transcript());
    }

    /// Stops the server and returns the requests. Fails the test if a request was unexpected or
    /// missing.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Vec<Request> {
        self.stop();
        self.shared.assert_script_followed();
        self.requests()
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    fn listen(script: Script) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::new(script));
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Server { shared, address, _reserved: Vec::new(), listening: true }
    }

    /// Stops accepting connections and closes the open ones. Connections that the program has
    /// already opened are still accepted: they precede the connection that makes the accepting
    /// thread end.
    fn stop(&mut self) {
        if !std::mem::take(&mut self.listening) {
            return;
        }
        {
            // Under the lock, so that the accepting thread recognizes this connection.
            let mut state = self.shared.lock();
            if let Ok(last) = TcpStream::connect(self.address) {
                state.stopping_peer = last.local_addr().ok();
            }
        }
        let stopped = self.shared.wait(DEFAULT_TIMEOUT, |state| state.stopping);
        self.shared.wait(DISCONNECT_TIMEOUT, |state| state.open == 0);
        self.shared.update(|state| {
            for stream in state.open_streams.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
        if !stopped || !self.shared.wait(DEFAULT_TIMEOUT, |state| state.open == 0) {
            let problem = "error in the harness: a thread of the server does not end";
            self.shared.add_problem(problem.into());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if !thread::panicking() {
            self.shared.assert_script_followed();
        }
    }
}

impl Shared {
    fn new(script: Script) -> Shared {
        let state = State {
            script,
            requests: Vec::new(),
            problems: Vec::new(),
            checks_history: true,
            lists_models: true,
            calls: 0,
            open_streams: Vec::new(),
            connections: 0,
            open: 0,
            stopping: false,
            stopping_peer: None,
        };
        Shared { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Requests and problems, for the message of a failed assertion.
    pub(super) fn transcript(&self) -> String {
        let state = self.lock();
        let mut text = format!("\n--- the server got {} requests", state.requests.len());
        for (index, request) in state.requests.iter().enumerate() {
            let _ = write!(text, "\n[{index}] {request:?}");
        }
        for problem in &state.problems {
            let _ = write!(text, "\n--- problem: {problem}");
        }
        text
    }

    #[track_caller]
    fn assert_script_followed(&self) {
        let mut state = self.lock();
        let missing = match &state.script {
            Script::InOrder(left) => left.len(),
            Script::Always(_) | Script::All(_) | Script::Unsolicited(_) => 0,
        };
        if missing > 0 {
            // Reported once, although `drop` follows `finish`.
            state.script = Script::InOrder(VecDeque::new());
            state.problems.push(format!("{missing} more requests were expected"));
        }
        let fine = state.problems.is_empty();
        drop(state);
        assert!(fine, "the endpoint's script was not followed{}", self.transcript());
    }

    fn accept(self: Arc<Shared>, listener: &TcpListener) {
        for number in 1.. {
            let Ok((stream, peer)) = listener.accept() else {
                break;
            };
            let mut state = self.lock();
            if state.stopping_peer == Some(peer) {
                break;
            }
            let _ = stream.set_nodelay(true);
            let Ok(copy) = stream.try_clone() else { break };
            state.open_streams.push(copy);
            state.connections += 1;
            state.open += 1;
            drop(state);
            let shared = Arc::clone(&self);
            thread::spawn(move || {
                shared.serve(stream, number);
                shared.update(|state| state.open -= 1);
            });
        }
        self.update(|state| state.stopping = true);
    }

    /// Whether `GET /v1/models` is no part of the script from now on.
    pub(super) fn list_models(&self, lists_models: bool) {
        self.lock().lists_models = lists_models;
    }

    pub(super) fn next_reply(&self, request: &Request) -> Reply {
        let mut state = self.lock();
        let path = request.path.split('?').next().unwrap_or_default();
        let asks_for_models = request.method == "GET" && path.ends_with("/models");
        let is_scripted = matches!(state.script, Script::All(_));
        if state.lists_models && asks_for_models && !is_scripted {
            // The owner shows that it is neither Ollama nor llama.cpp.
            let list = format!(r#"{{"data":[{{"id":"{MODEL}","owned_by":"vllm"}}]}}"#);
            return Reply::status(200).body(list);
        }
        state.requests.push(request.clone());
        let reply = match &mut state.script {
            Script::InOrder(replies) => replies.pop_front(),
            Script::Always(reply) | Script::All(reply) | Script::Unsolicited(reply) => {
                Some(reply.clone())
            }
        };
        if request.body.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()) {
            state.problems.push("a request's body contains the key".into());
        }
        if state.checks_history
            && request.matches("POST", "/chat/completions")
            && let Err(violation) = history::check(&request.json)
        {
            let number = state.requests.len() - 1;
            state.problems.push(format!("strict providers refuse request {number}: {violation}"));
        }
        drop(state);
        self.changed.notify_all();
        reply.unwrap_or_else(|| self.fail_request(request, "no further request was expected"))
    }

    /// The reply to send before a request is read, if the script is of that kind.
    pub(super) fn unsolicited_reply(&self) -> Option<Reply> {
        match &self.lock().script {
            Script::Unsolicited(reply) => Some(reply.clone()),
            _ => None,
        }
    }

    /// Records a problem that makes the test fail.
    pub(super) fn add_problem(&self, problem: String) {
        self.update(|state| state.problems.push(problem));
    }

    /// Drops the server's copy of a connection, which would keep it open.
    pub(super) fn forget_stream(&self, stream: &TcpStream) {
        let peer = stream.peer_addr().ok();
        self.update(|state| state.open_streams.retain(|other| other.peer_addr().ok() != peer));
    }

    /// Renders the reply to bytes and assigns the ids of its tool calls.
    pub(super) fn render(&self, reply: Reply, request: &Request) -> Response {
        reply.render(request, &mut self.lock().calls)
    }

    /// Records a problem and returns a reply that clients do not retry.
    pub(super) fn fail_request(&self, request: &Request, reason: &str) -> Reply {
        let problem = format!("{} {}: {reason}", request.method, request.path);
        self.add_problem(problem.clone());
        Reply::error(400, &format!("failure of the test: {problem}"))
    }

    /// Sleeps. Returns whether the server was stopped meanwhile.
    pub(super) fn sleep(&self, pause: Duration) -> bool {
        !pause.is_zero()
            && self.wait(pause, |state| state.stopping && state.open_streams.is_empty())
    }

    /// Waits for a condition. Returns whether it held before the timeout.
    fn wait(&self, timeout: Duration, condition: impl Fn(&State) -> bool) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            if condition(&state) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
