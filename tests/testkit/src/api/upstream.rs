//! The real server behind the stand-in, if it is a man in the middle.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::Response;
use http::request::Parts;
use http::uri::{Authority, Scheme};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt as _;
use kube::config::AuthInfo;
use serde_json::Value;
use tokio::sync::watch;

use super::handle::Body;
use super::route::Verb;
use super::store::Store;
use crate::cluster::{self, Cluster};

type Connector = hyper_rustls::HttpsConnector<HttpConnector>;

/// A client that passes on requests with their credentials.
pub(super) struct Upstream {
    client: Client<Connector, Full<Bytes>>,
    authority: Authority,
}

impl Upstream {
    pub(super) async fn new(cluster: &Cluster) -> Result<Self> {
        let mut config = cluster::config(&cluster.admin_kubeconfig()).await?;
        // This client trusts the server and has no credentials of its own.
        config.auth_info = AuthInfo::default();
        let url = config.cluster_url.clone();
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(config.rustls_https_connector()?),
            authority: url.authority().context("a host and a port")?.clone(),
        })
    }

    /// Fails if the server does not answer.
    pub(super) async fn carry_out(
        &self,
        parts: &Parts,
        verb: Verb,
        body: Bytes,
        store: watch::Receiver<Store>,
    ) -> Result<Response<Body>> {
        let mut request = http::Request::new(Full::new(body));
        let mut uri = parts.uri.clone().into_parts();
        uri.scheme = Some(Scheme::HTTPS);
        uri.authority = Some(self.authority.clone());
        *request.uri_mut() = http::Uri::from_parts(uri)?;
        *request.method_mut() = parts.method.clone();
        *request.headers_mut() = parts.headers.clone();
        let response = self.client.request(request).await?;
        Ok(response.map(|body| match verb {
            Verb::Watch => StreamBody::new(frames(body, store)).boxed_unsync(),
            _ => body.boxed_unsync(),
        }))
    }
}

/// The events of the server's watch, until the test ends the watch here.
fn frames(
    body: Incoming,
    mut store: watch::Receiver<Store>,
) -> impl Stream<Item = hyper::Result<Frame<Bytes>>> {
    let epoch = store.borrow_and_update().epoch;
    stream::unfold(Some((body, store)), move |watch| async move {
        let (mut body, mut store) = watch?;
        let ended = async {
            let store = store.wait_for(|store| store.epoch != epoch).await;
            store.ok().and_then(|store| store.farewell.clone())
        };
        tokio::select! {
            frame = body.frame() => Some((frame?, Some((body, store)))),
            farewell = ended => Some((Ok(Frame::data(line(&farewell?).into())), None)),
        }
    })
}

/// An event as a line of a watch.
pub(super) fn line(event: &Value) -> String {
    format!("{event}\n")
}
