//! The parts of pods that are the same for every configuration.

/// Where the configuration is in the pods, as `config.yaml`.
pub(super) const CONFIG_DIRECTORY: &str = "/etc/untaint";

/// Of everything, so that what is no longer written can be found.
pub(super) const LABELS: &str = "  labels:
    app.kubernetes.io/part-of: untaint
";

pub(super) const NAMESPACE: &str = "apiVersion: v1
kind: Namespace
metadata:
  name: untaint
  labels:
    app.kubernetes.io/part-of: untaint
    # The host's network and hostPath volumes need this level; a lower one, even as a cluster's default, would refuse
    # every pod, and only the DaemonSet's events would say so.
    pod-security.kubernetes.io/enforce: privileged
    pod-security.kubernetes.io/audit: privileged
    pod-security.kubernetes.io/warn: privileged
";

pub(super) const UPDATE_STRATEGY: &str = "  updateStrategy:
    rollingUpdate:
      # While a pod is replaced, a new node's taint stays a few seconds longer, no more. A configuration that cannot be
      # read stops the roll-out here.
      maxUnavailable: 10%
";

pub(super) const MOUNT_TOKEN: &str = "automountServiceAccountToken: true
";

pub(super) const GRACE_PERIOD: &str = "terminationGracePeriodSeconds: 5
";

pub(super) const HOST_NETWORK: &str = "# A pod with a network of its own would wait for the CNI that it is to wait for. The host's resolver, because the
# cluster's needs the CNI as well.
hostNetwork: true
dnsPolicy: Default
";

pub(super) const PRIORITY: &str =
    "# On GKE, a namespace other than kube-system needs a ResourceQuota for this class.
priorityClassName: system-node-critical
nodeSelector:
  kubernetes.io/os: linux
";

/// Of a container.
pub(super) const NODE_NAME: &str = "  env:
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
";

/// Of untaint's own container, where it stays.
pub(super) const API_SERVER: &str =
    "  # The address of the kubernetes Service may work only once the CNI does, where it replaces kube-proxy. Then set
  # KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT to an address of the API server that always works.
";

pub(super) const RUN: &str = "  args: [run, --config, /etc/untaint/config.yaml]
";

pub(super) const RUN_WITHOUT_LISTENER: &str =
    "  # No listener: on the host's network, its port could be another untaint's. No readiness probe: a sidecar's
  # counts for the whole pod, and the CNI is not less ready because a taint is still there.
  args: [run, --config, /etc/untaint/config.yaml, --listen, \"off\"]
";

pub(super) const NATIVE_SIDECAR: &str =
    "  # A native sidecar: started before the CNI, running as long as the pod does.
  restartPolicy: Always
";

pub(super) const RUN_ONCE: &str =
    "  # Starts when the container before it has ended well. After the time-out it exits with 3 and says why, and the
  # kubelet starts it again. It does not stay to see the taint put back, as a DaemonSet does.
  args: [run, --once, --config, /etc/untaint/config.yaml, --timeout, 5m]
";

/// For files that are for root alone.
pub(super) const ROOT: &str =
    "  # CNI configurations and agents' sockets are often for root alone (0600). Root without capabilities can read
  # and use what root owns, and nothing else.
  runAsUser: 0
  runAsGroup: 0
";

/// Where nothing is root's.
pub(super) const NOBODY: &str = "  runAsUser: 65532
  runAsGroup: 65532
  runAsNonRoot: true
";

pub(super) const CONFINED: &str = "  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
  seccompProfile:
    type: RuntimeDefault
";

pub(super) const RESOURCES: &str = "  resources:
    requests:
      cpu: 10m
      memory: 16Mi
    # No limit for the CPU: it would slow down the moments that others wait for.
    limits:
      memory: 64Mi
";

pub(super) const READINESS: &str =
    "  # No liveness probe: an agent whose loop ends exits by itself, and one whose port is taken by another program
  # of the host would be restarted again and again for it.
  readinessProbe:
    httpGet:
      # The host's loopback: nothing listens on the node's addresses.
      host: 127.0.0.1
      port: 9468
      path: /readyz
";

pub(super) const CONFIG_MOUNT: &str = "- name: config
  # The directory: a file mounted by subPath would never be updated.
  mountPath: /etc/untaint
  readOnly: true
";

pub(super) const PARENTS: &str =
    "# What the gates look at, each by the directory around it: a mount stays with the directory it was made of, and of
# one that is deleted and made anew nothing would be seen in the pod.
";

pub(super) const ABOUT_SIDECAR: &str =
    "# An example: put the init container untaint and the volumes into the DaemonSet of your CNI.
";

pub(super) const THE_CNI: &str = "containers:
# In place of the CNI's own container.
- name: cni
  image: busybox:1.37
  args: [sleep, infinity]
";

pub(super) const ABOUT_INIT_CONTAINER: &str =
    "# An example: put the init container untaint and its volumes into a DaemonSet of yours, after the one that does the
# work. Where a gate looks at a volume of the pod, mount that in place of the host's directory.
";

pub(super) const THE_WORK: &str = "# In place of what prepares the node.
- name: prepare
  image: busybox:1.37
  args: [\"true\"]
";

pub(super) const THE_AGENT: &str = "containers:
# In place of the agent that stays.
- name: agent
  image: busybox:1.37
  args: [sleep, infinity]
";

pub(super) const ABOUT_POST_START: &str =
    "# An example: put the init container install-untaint, the hook and the volumes into a DaemonSet whose image is not
# yours. The hook runs in the vendor's container, as its user and in its file system, which the gates look at.
";

pub(super) const INSTALLER: &str =
    "# Copies the program, which needs nothing from the image it runs in.
- name: install-untaint
";

/// Not at `/untaint`, which is the program itself in the image: a directory cannot be mounted there.
pub(super) const INSTALL: &str = "  args: [install, /install]
";

pub(super) const INSTALLER_MOUNT: &str = "  volumeMounts:
  - name: untaint
    mountPath: /install
";

/// In the vendor's container, whose image has nothing there.
pub(super) const PROGRAM_MOUNT: &str = "- name: untaint
  mountPath: /untaint
  readOnly: true
";

pub(super) const PROGRAM_VOLUME: &str = "- name: untaint
  emptyDir: {}
";

pub(super) const THE_VENDOR: &str = "containers:
# In place of the vendor's container: it answers some time after its start.
- name: agent
  image: busybox:1.37
  args: [sh, -c, 'mkdir /tmp/www && echo ok >/tmp/www/healthz && exec httpd -f -p 8080 -h /tmp/www']
  lifecycle:
    postStart:
      exec:
        # Runs beside the container's own program, which may be asked directly; but until the hook has ended,
        # the container does not count as started and its probes rest, so never wait for the pod to be ready.
        # If the hook fails or is not in time, the container is killed and started again.
        command:
        - /untaint/untaint
        - run
        - --once
        - --config=/etc/untaint/config.yaml
        - --timeout=2m
";
