//! The scripted endpoint on loopback. It answers the requests in the order of
//! the script, keeps all of them, and fails the test when one comes that the
//! script does not have, or one is missing in the end.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::reply::Reply;
use super::request::Request;
use super::wire::Wire;
use super::{CANARY, MODEL, PATIENCE, history};

/// How long the connections of a program that has ended may take to say so.
const GRACE: Duration = Duration::from_millis(500);

/// A server that plays an endpoint. Dropping it does what
/// [`Server::finish`] does.
pub(crate) struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Keeps the port of [`Server::refused`] from being given to anybody else,
    /// and that of [`Server::full`] from becoming free.
    _reserved: Vec<OwnedFd>,
    listening: bool,
}

/// What the server's threads and the test have in common.
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    script: Script,
    requests: Vec<Request>,
    /// Everything that makes the test fail.
    problems: Vec<String>,
    checks_history: bool,
    /// A conversation on a terminal asks for the models before it begins. A
    /// script does not have to speak of that.
    lists_models: bool,
    /// Calls that were numbered so far.
    calls: usize,
    /// Every connection there was, to wake the threads that wait for one.
    streams: Vec<TcpStream>,
    /// Connections there were.
    connections: usize,
    /// Connections that are still served.
    open: usize,
    stopping: bool,
    /// The connection that only tells the accepting thread to end.
    last: Option<SocketAddr>,
}

enum Script {
    InOrder(VecDeque<Reply>),
    Always(Reply),
    /// To every connection, before a request was read.
    Unasked(Reply),
}

impl Server {
    /// A server that answers with these, one after the other.
    pub(crate) fn start(script: impl IntoIterator<Item = Reply>) -> Server {
        Server::listen(Script::InOrder(script.into_iter().collect()))
    }

    /// A server that answers any number of requests, in any order.
    pub(crate) fn always(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        Server::listen(Script::Always(Reply::from_fn(answer)))
    }

    /// A server that says the same to every connection at once, and reads no
    /// request: with [`Reply::raw`] and [`Reply::nothing`].
    pub(crate) fn unasked(reply: Reply) -> Server {
        Server::listen(Script::Unasked(reply))
    }

    /// An address that nobody listens at.
    pub(crate) fn refused() -> Server {
        // The near end of a connection has a port that is taken and does not
        // listen. Both ends stay: a broken connection would give its port back.
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let far = listener.local_addr().expect("a bound socket has an address");
        let near = TcpStream::connect(far).expect("the listener has room");
        let (far, address) = listener.accept().expect("the connection is made");
        let shared = Arc::new(Shared::new(Script::InOrder(VecDeque::new())));
        Server { shared, address, _reserved: vec![near.into(), far.into()], listening: false }
    }

    /// An address where connections are neither refused nor made: so many wait
    /// already that the kernel lets no more in.
    pub(crate) fn full() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        // SAFETY: a system call on a descriptor that is open.
        let status = unsafe { libc::listen(listener.as_raw_fd(), 0) };
        assert_eq!(status, 0, "the room for waiting connections can be changed");
        let patience = Duration::from_millis(200);
        let mut reserved = vec![OwnedFd::from(listener)];
        while let Ok(waiting) = TcpStream::connect_timeout(&address, patience) {
            reserved.push(waiting.into());
            assert!(reserved.len() < 100, "there is room for everybody");
        }
        let shared = Arc::new(Shared::new(Script::InOrder(VecDeque::new())));
        Server { shared, address, _reserved: reserved, listening: false }
    }

    /// Takes histories that strict providers refuse.
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

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// How many connections there were so far.
    pub(crate) fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// Waits until this many requests have come.
    #[track_caller]
    pub(crate) fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        let came = self.shared.wait(PATIENCE, |state| state.requests.len() >= count);
        assert!(came, "{count} requests did not come{}", self.shared.picture());
        self.requests()
    }

    /// Waits until the program has closed all its connections.
    #[track_caller]
    pub(crate) fn wait_for_hang_up(&self) {
        let closed = self.shared.wait(PATIENCE, |state| state.open == 0);
        assert!(closed, "a connection stays open{}", self.shared.picture());
    }

    /// Ends the server and gives the requests. Fails the test when one came
    /// that was not expected, or did not come that was.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Vec<Request> {
        self.stop();
        self.shared.check();
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

    /// Requests that the program has sent are still taken in: they stand in
    /// line before the connection that ends the accepting.
    fn stop(&mut self) {
        if !std::mem::take(&mut self.listening) {
            return;
        }
        {
            // Under the lock, so that the accepting thread knows whom it is looking at.
            let mut state = self.shared.lock();
            if let Ok(last) = TcpStream::connect(self.address) {
                state.last = last.local_addr().ok();
            }
        }
        let stopped = self.shared.wait(PATIENCE, |state| state.stopping);
        self.shared.wait(GRACE, |state| state.open == 0);
        self.shared.change(|state| {
            for stream in state.streams.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
        if !stopped || !self.shared.wait(PATIENCE, |state| state.open == 0) {
            let problem = "the harness itself is stuck: a thread of the server does not end";
            self.shared.problem(problem.into());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if !thread::panicking() {
            self.shared.check();
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
            lists_models: false,
            calls: 0,
            streams: Vec::new(),
            connections: 0,
            open: 0,
            stopping: false,
            last: None,
        };
        Shared { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Requests and problems, for the message of an assertion that failed.
    pub(super) fn picture(&self) -> String {
        let state = self.lock();
        let mut picture = format!("\n--- the server got {} requests", state.requests.len());
        for (index, request) in state.requests.iter().enumerate() {
            let _ = write!(picture, "\n[{index}] {request:?}");
        }
        for problem in &state.problems {
            let _ = write!(picture, "\n--- problem: {problem}");
        }
        picture
    }

    #[track_caller]
    fn check(&self) {
        let mut state = self.lock();
        let missing = match &state.script {
            Script::InOrder(left) => left.len(),
            Script::Always(_) | Script::Unasked(_) => 0,
        };
        if missing > 0 {
            // Said once, also when the server is dropped after it was finished.
            state.script = Script::InOrder(VecDeque::new());
            state.problems.push(format!("{missing} more requests were expected"));
        }
        let fine = state.problems.is_empty();
        drop(state);
        assert!(fine, "the endpoint's script was not followed{}", self.picture());
    }

    fn accept(self: Arc<Shared>, listener: &TcpListener) {
        for number in 1.. {
            let Ok((stream, peer)) = listener.accept() else {
                break;
            };
            let mut state = self.lock();
            if state.last == Some(peer) {
                break;
            }
            let _ = stream.set_nodelay(true);
            let Ok(copy) = stream.try_clone() else { break };
            state.streams.push(copy);
            state.connections += 1;
            state.open += 1;
            drop(state);
            let shared = Arc::clone(&self);
            thread::spawn(move || {
                shared.serve(stream, number);
                shared.change(|state| state.open -= 1);
            });
        }
        self.change(|state| state.stopping = true);
    }

    /// From now on a script has an answer to `GET /v1/models`, which is not counted.
    pub(super) fn list_models(&self) {
        self.lock().lists_models = true;
    }

    pub(super) fn take_reply(&self, request: &Request) -> Reply {
        let mut state = self.lock();
        let asks_for_models = request.method == "GET" && request.path == "/v1/models";
        if state.lists_models && asks_for_models && matches!(state.script, Script::InOrder(_)) {
            return Reply::status(200).body(format!(r#"{{"data":[{{"id":"{MODEL}"}}]}}"#));
        }
        state.requests.push(request.clone());
        let reply = match &mut state.script {
            Script::InOrder(replies) => replies.pop_front(),
            Script::Always(reply) | Script::Unasked(reply) => Some(reply.clone()),
        };
        if request.body.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()) {
            state.problems.push("the key stands in a request's body".into());
        }
        if state.checks_history
            && request.is("POST", "/chat/completions")
            && let Err(fault) = history::check(&request.json)
        {
            let number = state.requests.len() - 1;
            state.problems.push(format!("strict providers refuse request {number}: {fault}"));
        }
        drop(state);
        self.changed.notify_all();
        reply.unwrap_or_else(|| self.refuse(request, "nothing more was expected"))
    }

    /// What is said before a request was read, where the script is such a one.
    pub(super) fn said_unasked(&self) -> Option<Reply> {
        match &self.lock().script {
            Script::Unasked(reply) => Some(reply.clone()),
            _ => None,
        }
    }

    /// Something that makes the test fail.
    pub(super) fn problem(&self, problem: String) {
        self.change(|state| state.problems.push(problem));
    }

    /// The connection is over: the copies that others hold must not keep it open.
    pub(super) fn forget(&self, stream: &TcpStream) {
        let peer = stream.peer_addr().ok();
        self.change(|state| state.streams.retain(|other| other.peer_addr().ok() != peer));
    }

    /// The reply as bytes, its calls numbered on from the last one.
    pub(super) fn render(&self, reply: Reply, request: &Request) -> Wire {
        reply.render(request, &mut self.lock().calls)
    }

    /// Remembers the problem, and answers in a way that nobody tries again.
    pub(super) fn refuse(&self, request: &Request, reason: &str) -> Reply {
        let problem = format!("{} {}: {reason}", request.method, request.path);
        self.problem(problem.clone());
        Reply::error(400, &format!("failure of the test, not of the program: {problem}"))
    }

    /// Whether the server was stopped before the time was over.
    pub(super) fn sleep(&self, pause: Duration) -> bool {
        !pause.is_zero() && self.wait(pause, |state| state.stopping && state.streams.is_empty())
    }

    /// Whether the condition came true in time.
    fn wait(&self, patience: Duration, condition: impl Fn(&State) -> bool) -> bool {
        let deadline = Instant::now() + patience;
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

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
