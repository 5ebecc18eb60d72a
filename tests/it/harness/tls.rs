//! TLS in front of a plain server: Python's `ssl` decrypts and forwards the bytes. The
//! certificates are in `tests/data/tls`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::python;

/// A TLS server on loopback; stopped when dropped.
pub(crate) struct TlsServer {
    child: Child,
    port: u16,
}

impl TlsServer {
    /// Starts a server that presents the certificate `tests/data/tls/{certificate}.pem` and
    /// forwards connections to this port.
    pub(crate) fn start(certificate: &str, target: u16) -> TlsServer {
        TlsServer::start_with_context(certificate, target, "")
    }

    /// Like [`TlsServer::start`], with Python lines that change the `context`.
    pub(crate) fn start_with_context(
        certificate: &str,
        target: u16,
        context_lines: &str,
    ) -> TlsServer {
        let script = SCRIPT.replace("# context lines", context_lines);
        let mut child = Command::new(python::interpreter())
            .args(["-I", "-c", &script])
            .arg(tls_file(&format!("{certificate}.pem")))
            .arg(tls_file(&format!("{certificate}.key")))
            .arg(tls_file("ca.pem"))
            .arg(target.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the interpreter runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the server prints its port");
        let port = line.trim().parse().expect("a port");
        TlsServer { child, port }
    }

    /// The port that the server listens on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The path of a file in `tests/data/tls`.
pub(crate) fn tls_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

const SCRIPT: &str = r#"
import os, select, socket, ssl, sys, threading
certificate, key, ca, target = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
# context lines
def serve(plain):
    try:
        with context.wrap_socket(plain, server_side=True) as tls, \
                socket.create_connection(("127.0.0.1", int(target))) as server:
            while True:
                ready = [tls] if tls.pending() else select.select([tls, server], [], [])[0]
                for source in ready:
                    data = source.recv(65536)
                    if not data:
                        return
                    (server if source is tls else tls).sendall(data)
    except OSError:
        plain.close()
def end_with_parent():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=end_with_parent, daemon=True).start()
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;
