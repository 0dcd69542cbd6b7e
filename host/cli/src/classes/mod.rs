//! Classes of tenants that have a process of their own: started, asked and ended.

mod own;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use nala_class::{Door, Keeper, NoAnswer, Process};
use nala_http::{HostError, ResponseBody};
use nala_manifest::operator::Class;
use nala_oci::Credentials;
use nala_tenant::ClassName;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub(crate) use self::own::{behind, console, settings};
use crate::args::KeepArgs;
use crate::console::Help;
use crate::program;

/// The environment variable by which a process is told whose it is. It is none of the
/// line's options, so that the line can be the host's own.
pub(crate) const VARIABLE: &str = "NALA_CLASS";

/// How long a process may take to end once nothing is asked of it any more.
pub(crate) const GRACE: Duration = Duration::from_secs(15);

/// What a client is told to wait while a process is started. Most need as long to map
/// their model.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Requests of a class that are on their way at a time: each takes a file descriptor of
/// the host in front, which others need for their connections.
const MOST: usize = 512;

/// Where a class keeps what is kept between starts.
pub(crate) fn folder(state: &Path, class: &ClassName) -> PathBuf {
    state.join("class").join(class.as_str())
}

/// The processes that keep those of classes, while nothing else runs.
#[derive(Default)]
pub(crate) struct Keepers(Vec<(ClassName, Keeper)>);

impl Keepers {
    /// Starts one for each class, without the environment variables that are withheld from
    /// it. To be called before the right to start programs is
    /// given up.
    ///
    /// # Errors
    /// One cannot be started.
    pub(crate) fn start(classes: &[Class], withheld: &BTreeMap<ClassName, BTreeSet<String>>) -> anyhow::Result<Self> {
        let mut keepers = Vec::new();
        for class in classes {
            let mut command = Command::new(program::path()?);
            command.args(["keep", "--class", class.name.as_str(), "--"]).args(std::env::args_os().skip(1));
            for variable in withheld.get(&class.name).into_iter().flatten() {
                command.env_remove(variable);
            }
            let keeper = Keeper::start(command)
                .with_context(|| format!("the process of the class {} cannot be started", class.name))?;
            keepers.push((class.name.clone(), keeper));
        }
        Ok(Self(keepers))
    }
}

/// The hidden verb of a keeper.
///
/// # Errors
/// It was not started by a host.
pub(crate) fn keep(args: &KeepArgs) -> anyhow::Result<()> {
    let program = program::path()?;
    let process = || {
        let mut command = Command::new(&program);
        command.args(&args.line).env(VARIABLE, args.class.as_str());
        // What the host shows to registries is none of the class's.
        for name in Credentials::VARIABLES {
            command.env_remove(name);
        }
        command
    };
    nala_class::keep(args.class.as_str(), process, GRACE).map_err(|error| {
        let what = format!("the class {} cannot be kept: {error}", args.class);
        Help { what, help: "start `nala-host up` with the operator's file; it does this itself".to_owned() }.into()
    })
}

/// A class's process, and the room for requests to it.
#[derive(Debug)]
struct Kept {
    process: Process,
    room: Arc<Semaphore>,
}

/// The processes of all classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes(Arc<BTreeMap<ClassName, Kept>>);

impl Classes {
    /// Follows what keepers start.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn follow(keepers: Keepers) -> anyhow::Result<Self> {
        let one = |(name, keeper)| {
            let process = Process::follow(keeper).context("a class cannot be followed")?;
            Ok((name, Kept { process, room: Arc::new(Semaphore::new(MOST)) }))
        };
        let all = keepers.0.into_iter().map(one).collect::<anyhow::Result<BTreeMap<_, _>>>()?;
        Ok(Self(Arc::new(all)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Has a class's process answer a request.
    ///
    /// # Errors
    /// The process is not there or gives no answer, has more to answer than it may, or the
    /// class is newer than this host.
    pub(crate) async fn forward<B>(
        &self,
        class: &ClassName,
        door: Door,
        request: Request<B>,
    ) -> Result<Response<ResponseBody>, HostError>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let kept = self.0.get(class).ok_or_else(without_process)?;
        let place = Arc::clone(&kept.room).try_acquire_owned().map_err(|_full| crowded())?;
        let response = kept.process.forward(door, request).await.map_err(|error| match error {
            NoAnswer::Away(_) => away(class),
            NoAnswer::Broken => broken(class),
        })?;
        // Until the whole answer has been sent, or nobody wants it any more.
        Ok(response.map(|body| {
            ResponseBody::new(body.map_frame(move |frame| {
                let _held = &place;
                frame
            }))
        }))
    }

    /// Waits until a class has nobody any more who would start its process.
    pub(crate) async fn first_lost(&self) -> ClassName {
        let mut losses = JoinSet::new();
        for (name, kept) in &*self.0 {
            let (name, process) = (name.clone(), kept.process.clone());
            losses.spawn(async move {
                process.lost().await;
                name
            });
        }
        match losses.join_next().await {
            Some(Ok(lost)) => lost,
            Some(Err(_)) | None => std::future::pending().await,
        }
    }

    /// Ends all processes, and waits for that.
    pub(crate) async fn stop(&self) {
        let mut stops = JoinSet::new();
        for kept in self.0.values() {
            let process = kept.process.clone();
            stops.spawn(async move { process.stop(GRACE).await });
        }
        stops.join_all().await;
    }
}

/// The answer while a class's process is not there.
fn away(class: &ClassName) -> HostError {
    tracing::debug!(class = class.as_str(), "a request came while the class's process was not there");
    let text = "The process that serves this tenant is being started. Try again shortly.";
    HostError::new(StatusCode::SERVICE_UNAVAILABLE, "class_unavailable", text).retry_after(RETRY_AFTER)
}

/// The answer where a request was sent and came to nothing. It may have done something.
fn broken(class: &ClassName) -> HostError {
    tracing::warn!(class = class.as_str(), "the class's process gave no answer to a request");
    let text = "The process that serves this tenant gave no answer.";
    HostError::new(StatusCode::BAD_GATEWAY, "class_gave_no_answer", text)
}

/// The answer where a class has as many requests as it may.
fn crowded() -> HostError {
    let text = "Too many requests are on their way to the process that serves this tenant. Try again shortly.";
    HostError::new(StatusCode::TOO_MANY_REQUESTS, "class_at_capacity", text).retry_after(RETRY_AFTER)
}

/// The answer for a class that came into the file while the host serves.
fn without_process() -> HostError {
    let text = "The process that is to serve this tenant can only be started with the host. Ask the operator.";
    HostError::new(StatusCode::SERVICE_UNAVAILABLE, "class_unavailable", text)
}

/// Whether each class has a process, for `/metrics`.
impl Collector for Classes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if self.is_empty() {
            return Ok(());
        }
        let help = "Whether the process of a class of tenants is there";
        let mut up = encoder.encode_descriptor("class_up", help, None, MetricType::Gauge)?;
        for (name, kept) in &*self.0 {
            let labels = [("class", name.as_str().to_owned())];
            ConstGauge::new(i64::from(kept.process.is_there())).encode(up.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
