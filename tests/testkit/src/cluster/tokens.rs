//! Every kind of token of a `ServiceAccount`.

use std::fs;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};

use super::{Cluster, JSON};

impl Cluster {
    /// A token of a `ServiceAccount` that is bound to a Node, as a pod's token is: its user has the claim
    /// `authentication.kubernetes.io/node-name`.
    pub async fn token_for_node(
        &self,
        namespace: &str,
        service_account: &str,
        node: &str,
    ) -> Result<String> {
        let uid = &self.node(node).await?["metadata"]["uid"];
        let reference = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid});
        let spec = json!({"boundObjectRef": reference});
        self.request_token(namespace, service_account, &spec).await
    }

    /// A token of a `ServiceAccount` that is bound to a pod with this name on this Node. This creates the pod. The
    /// claims of the user stay after the Node is deleted.
    pub async fn token_for_pod(
        &self,
        namespace: &str,
        service_account: &str,
        pod: &str,
        node: &str,
    ) -> Result<String> {
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        let object = json!({
            "metadata": {"name": pod},
            "spec": {
                "serviceAccountName": service_account,
                "nodeName": node,
                "containers": [{"name": "c", "image": "none"}],
            },
        });
        let made = self
            .request(Method::POST, &pods, JSON, Some(&object))
            .await?;
        let uid = &made["metadata"]["uid"];
        let reference = json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid});
        let spec = json!({"boundObjectRef": reference});
        self.request_token(namespace, service_account, &spec).await
    }

    /// A token of a `ServiceAccount` that is not bound to an object.
    pub async fn token(&self, namespace: &str, service_account: &str) -> Result<String> {
        self.request_token(namespace, service_account, &json!({}))
            .await
    }

    async fn request_token(
        &self,
        namespace: &str,
        service_account: &str,
        spec: &Value,
    ) -> Result<String> {
        let uri = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token");
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": spec,
        });
        let answer = self
            .request(Method::POST, &uri, JSON, Some(&request))
            .await?;
        let token = answer["status"]["token"].as_str();
        Ok(token.context("a token")?.to_owned())
    }

    /// A token of a `ServiceAccount` in a Secret, as the controller manager creates it.
    pub async fn token_in_secret(&self, namespace: &str, service_account: &str) -> Result<String> {
        let name = format!("{service_account}-token");
        let uri = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}");
        let account = self.request(Method::GET, &uri, JSON, None).await?;
        let uid = &account["metadata"]["uid"];
        let claims = json!({
            "iss": "kubernetes/serviceaccount",
            "sub": format!("system:serviceaccount:{namespace}:{service_account}"),
            "kubernetes.io/serviceaccount/namespace": namespace,
            "kubernetes.io/serviceaccount/secret.name": name,
            "kubernetes.io/serviceaccount/service-account.name": service_account,
            "kubernetes.io/serviceaccount/service-account.uid": uid,
        });
        let token = self.sign(&claims)?;
        let secret = json!({
            "metadata": {
                "name": name,
                "annotations": {
                    "kubernetes.io/service-account.name": service_account,
                    "kubernetes.io/service-account.uid": uid,
                },
            },
            "type": "kubernetes.io/service-account-token",
            "stringData": {"token": token},
        });
        let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
        self.request(Method::POST, &secrets, JSON, Some(&secret))
            .await?;
        Ok(token)
    }

    /// A JSON Web Token, signed as kube-apiserver and the controller manager sign the tokens of `ServiceAccount`s.
    fn sign(&self, claims: &Value) -> Result<String> {
        let key = fs::read_to_string(self.control_plane.token_key())?;
        let key = KeyPair::from_pkcs8_pem_and_sign_algo(&key, &PKCS_ECDSA_P256_SHA256)?;
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, &key.serialize_der(), &random)?;
        let encode = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
        let head = encode(br#"{"alg":"ES256"}"#);
        let signed = format!("{head}.{}", encode(claims.to_string().as_bytes()));
        let signature = key.sign(&random, signed.as_bytes())?;
        Ok(format!("{signed}.{}", encode(signature.as_ref())))
    }
}
