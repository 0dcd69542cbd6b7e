//! Servers: good ones by hyper, and scripts of bytes for the others.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A server that runs until the test ends.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Serves each connection, with its number from 1.
    pub(crate) async fn run<F, R>(serve: F) -> Self
    where
        F: Fn(TcpStream, usize) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, count.fetch_add(1, Ordering::SeqCst) + 1));
            }
        });
        Self { address, connections }
    }

    /// Speaks HTTP/1.1 and tells what it was asked.
    pub(crate) async fn echo() -> Self {
        Self::run(|stream, _| serve_http1(stream, "plain".to_owned())).await
    }

    /// Speaks HTTP over TLS, by the protocols of ALPN that are given.
    pub(crate) async fn tls(authority: &Authority, names: &[&str], alpn: &[&str]) -> Self {
        let acceptor = authority.acceptor(names, alpn);
        Self::run(move |stream, _| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let session = stream.get_ref().1;
                let name = session.server_name().unwrap_or("no name").to_owned();
                if session.alpn_protocol() == Some(b"h2") {
                    serve_http2(stream, name).await;
                } else {
                    serve_http1(stream, name).await;
                }
            }
        })
        .await
    }
}

/// What was asked, as text: the version, the method, the URI, the host, and
/// how long the body was.
async fn tell(request: Request<Incoming>, seen: String) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let host = parts.headers.get("host").map_or("-", |host| host.to_str().unwrap());
    let mut head = format!("{:?} {} {} host={host} sni={seen}", parts.version, parts.method, parts.uri);
    if parts.uri.path() == "/redirect" {
        let response = Response::builder().status(302).header("location", "http://127.0.0.1:1/").body(Full::default());
        return Ok(response.unwrap());
    }
    if parts.uri.path() == "/shown" {
        let shown = |name: &str| {
            let values = parts.headers.get_all(name).iter();
            values.map(|value| value.to_str().unwrap()).collect::<Vec<_>>().join(",")
        };
        let text = format!("authorization={} x-api-key={}", shown("authorization"), shown("x-api-key"));
        return Ok(Response::new(Full::new(Bytes::from(text))));
    }
    if let Ok(body) = body.collect().await {
        head += &format!(" body={}", body.to_bytes().len());
    } else {
        head += " body=broken";
    }
    let mut response = Response::new(Full::new(Bytes::from(head)));
    if parts.uri.path() == "/headers" {
        response.headers_mut().insert("x-long", "x".repeat(100_000).parse().unwrap());
    }
    Ok(response)
}

async fn serve_http1<T: AsyncRead + AsyncWrite + Send + Unpin + 'static>(stream: T, seen: String) {
    let service = service_fn(move |request| tell(request, seen.clone()));
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn serve_http2<T: AsyncRead + AsyncWrite + Send + Unpin + 'static>(stream: T, seen: String) {
    let service = service_fn(move |request| tell(request, seen.clone()));
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

/// Reads the head of a request, and gives it back with what came behind it.
pub(crate) async fn read_head(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let mut byte = [0];
    while !read.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte).await {
            Ok(1) => read.extend(byte),
            _ => break,
        }
    }
    String::from_utf8(read).unwrap()
}

/// An authority for certificates.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    pub(crate) fn root(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// The root as files have it.
    pub(crate) fn pem(&self) -> String {
        let text = BASE64_STANDARD.encode(self.root());
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    }

    pub(crate) fn acceptor(&self, names: &[&str], alpn: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.unwrap().with_no_client_auth();
        let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}
