use super::*;

#[tokio::test]
async fn a_redirect_within_the_host_is_followed_and_its_answer_decides() {
    let elsewhere = http(|_| UNAVAILABLE.into()).await;
    let port = http(move |head| {
        let location = match head.split(' ').nth(1).unwrap() {
            "/healthz" => "ready?x",
            "/there" => &format!("http://127.0.0.1:{elsewhere}/"),
            _ => return OK.into(),
        };
        format!("HTTP/1.1 307 x\r\nLocation: {location}\r\nContent-Length: 9\r\n\r\n")
    })
    .await;
    assert_eq!(soon(check(&spec(port))).await, open("200 OK"));
    let there = HttpGet {
        path: "/there".into(),
        ..spec(port)
    };
    assert_eq!(
        soon(check(&there)).await,
        closed(
            elsewhere,
            "GET /: 503 Service Unavailable, expected 200-299"
        )
    );
}

#[tokio::test]
async fn a_redirect_to_another_host_closes_even_where_its_status_is_in_the_range() {
    let port =
        http(|_| "HTTP/1.1 302 x\r\nLocation: https://sso.example/login\r\n\r\n".into()).await;
    let reason = "GET /healthz: 302 Found: untaint does not follow the redirect to https://sso.example/login: it names another host";
    for spec in [spec(port), with_status(port, 200, 399)] {
        assert_eq!(check(&spec).await, closed(port, reason));
    }
}

#[tokio::test]
async fn a_redirect_that_is_expected_by_its_number_is_the_answer() {
    let port =
        http(|_| "HTTP/1.1 302 x\r\nLocation: https://sso.example/login\r\n\r\n".into()).await;
    assert_eq!(check(&with_status(port, 302, 302)).await, open("302 Found"));
}

#[tokio::test]
async fn a_redirect_without_a_readable_location_closes() {
    for location in ["", "Location: /\u{e9}\r\n", "Location: mailto:x\r\n"] {
        let port = http(move |_| format!("HTTP/1.1 301 x\r\n{location}\r\n")).await;
        let outcome = check(&spec(port)).await;
        assert!(
            outcome.message().contains("301 Moved Permanently"),
            "{outcome:?}"
        );
        assert!(!outcome.is_open());
    }
}

#[tokio::test]
async fn redirects_end_after_ten() {
    let (seen, mut heads) = unbounded_channel();
    let port = http(move |head| {
        seen.send(head.to_owned()).unwrap();
        "HTTP/1.1 302 x\r\nLocation: /again\r\n\r\n".into()
    })
    .await;
    assert_eq!(
        soon(check(&spec(port))).await,
        Outcome::Closed("stopped after 10 redirects".into())
    );
    heads.close();
    let mut requests = 0;
    while heads.recv().await.is_some() {
        requests += 1;
    }
    assert_eq!(requests, 11);
}
