//! A proxy that cuts connections.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Forwards connections to a server, until it has forwarded so many bytes of either direction.
pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    server: Mutex<SocketAddr>,
    /// How many more bytes are forwarded before all connections are cut; `u64::MAX` for any number.
    left: AtomicU64,
    /// How many were forwarded.
    forwarded: AtomicU64,
    /// How many connections were cut.
    cuts: AtomicU64,
    is_refusing: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub fn new(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            server: Mutex::new(server),
            left: AtomicU64::new(u64::MAX),
            forwarded: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            is_refusing: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let accepting = shared.clone();
        // It ends with the process of the test.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                accepting.accept(client);
            }
        });
        Proxy { address, shared }
    }

    /// Cuts all connections after so many bytes, once.
    pub fn cut_after(&self, bytes: u64) {
        self.shared.left.store(bytes, Ordering::SeqCst);
    }

    /// Cuts all connections now.
    pub fn cut(&self) {
        self.shared.cut();
    }

    /// Whether new connections are closed at once.
    pub fn refuse(&self, is_refusing: bool) {
        self.shared.is_refusing.store(is_refusing, Ordering::SeqCst);
    }

    /// Forwards new connections to another server.
    pub fn forward_to(&self, server: SocketAddr) {
        *self.shared.server.lock().unwrap() = server;
    }

    pub fn forwarded(&self) -> u64 {
        self.shared.forwarded.load(Ordering::SeqCst)
    }

    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, client: TcpStream) {
        if self.is_refusing.load(Ordering::SeqCst) {
            return;
        }
        let Ok(server) = TcpStream::connect(*self.server.lock().unwrap()) else { return };
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
            self.open.lock().unwrap().push(stream.try_clone().unwrap());
        }
        let ways = [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)];
        for (from, to) in ways {
            let shared = self.clone();
            thread::spawn(move || shared.forward(from, to));
        }
    }

    fn forward(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 16 << 10];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let left = self.left.load(Ordering::SeqCst);
            let allowed = left.min(read as u64);
            let sent = to.write_all(&buffer[..allowed as usize]);
            self.forwarded.fetch_add(allowed, Ordering::SeqCst);
            if left != u64::MAX {
                self.left.store(left - allowed, Ordering::SeqCst);
                if left <= read as u64 {
                    self.left.store(u64::MAX, Ordering::SeqCst);
                    self.cut();
                }
            }
            if sent.is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }

    fn cut(&self) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
