//! Requests a second through the gate, beside hyper's client alone.
//!
//! ```sh
//! cargo run --release -p nala-egress --example throughput
//! ```
//!
//! Client and server share the process and the loopback interface; both sides
//! take turns in one run, with one request at a time and with 32.

#![expect(clippy::print_stdout, reason = "it is what the example is for")]

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use nala_egress::{
    AllowList, ConnectionLimit, Egress, EgressMetrics, Gate, GateConfig, Idle, Owner, SystemResolver, Timeouts,
    TrustRoots,
};
use tokio::net::{TcpListener, TcpStream};

type Failure = Box<dyn Error + Send + Sync>;

const TIME: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let address = serve().await?;
    let idle = Idle { each: 64, ..Idle::default() };
    let config = GateConfig { roots: TrustRoots::Only(Vec::new()), idle, ..GateConfig::default() };
    let limit = Arc::new(ConnectionLimit::new(64, 64));
    let gate = Gate::new(config, Arc::new(SystemResolver::default()), limit, EgressMetrics::default())?;
    let egress = gate.egress(Owner::new("tenant", "bench"), AllowList::parse(&["http://127.0.0.1:*"])?);
    println!("{:>9} {:>12} {:>12}   requests a second", "at once", "hyper", "nala-egress");
    for at_once in [1, 32] {
        for _ in 0..3 {
            let plain = many(at_once, || plain(address)).await?;
            let gated = many(at_once, || gated(egress.clone(), address)).await?;
            println!("{at_once:>9} {plain:>12} {gated:>12}");
        }
    }
    Ok(())
}

async fn serve() -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let hello = |_| async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"hello")))) };
            let server = hyper::server::conn::http1::Builder::new();
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service_fn(hello)));
        }
    });
    Ok(address)
}

/// How many requests a second some clients get done together.
async fn many<F, R>(at_once: usize, client: F) -> Result<u64, Failure>
where
    F: Fn() -> R,
    R: Future<Output = Result<u64, Failure>> + Send + 'static,
{
    let clients: Vec<_> = (0..at_once).map(|_| tokio::spawn(client())).collect();
    let mut done = 0;
    for client in clients {
        done += client.await??;
    }
    Ok(done / TIME.as_secs())
}

async fn plain(address: SocketAddr) -> Result<u64, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    let (begun, mut done) = (Instant::now(), 0);
    while begun.elapsed() < TIME {
        sender.ready().await?;
        let request = Request::get("/").header("host", address.to_string()).body(Full::new(Bytes::new()))?;
        sender.send_request(request).await?.into_body().collect().await?;
        done += 1;
    }
    Ok(done)
}

async fn gated(egress: Egress, address: SocketAddr) -> Result<u64, Failure> {
    let (begun, mut done) = (Instant::now(), 0);
    while begun.elapsed() < TIME {
        let request = Request::get(format!("http://{address}/")).body(Full::new(Bytes::new()))?;
        egress.send(request, Timeouts::UNSET).await?.into_body().collect().await?;
        done += 1;
    }
    Ok(done)
}
