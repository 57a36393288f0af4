//! Looks up the addresses of the API server, where its URL has a name.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::vec::IntoIter;

use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tower::util::{ServiceFn, service_fn};

use crate::blocking::API_NAMES;

pub(super) type Resolver = ServiceFn<fn(Name) -> BoxFuture<'static, Addresses>>;

type Addresses = io::Result<IntoIter<SocketAddr>>;

pub(super) fn resolver() -> Resolver {
    service_fn(|name| Box::pin(resolve(name)))
}

/// Asks the system's resolver, which blocks. A look-up outlives its request while DNS, or the file system of
/// `/etc/hosts`, does not answer.
async fn resolve(name: Name) -> Addresses {
    let place = name.as_str().to_owned();
    // The connector puts the port in.
    let look_up = move || (name.as_str(), 0).to_socket_addrs();
    API_NAMES.run(place.as_ref(), look_up).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn look_ups_without_an_answer_do_not_pile_up() {
        let name: Name = "localhost".parse().unwrap();
        let permit = || API_NAMES.permit(name.as_str().as_ref()).now_or_never();
        let hung: Vec<_> = std::iter::from_fn(permit).collect();
        let look_up = timeout(Duration::from_mins(1), resolve(name.clone()));
        assert!(look_up.await.is_err());
        drop(hung);
        let mut addresses = resolve(name).await.unwrap();
        assert!(addresses.any(|address| address.ip().is_loopback()));
    }
}
