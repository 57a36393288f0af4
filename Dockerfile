# The image: one static program and nothing else, for amd64 and arm64.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --tag registry.example.com/untaint:0.1.0 --push .
#
# The other architecture is compiled for, not emulated, which would take an hour.

# Its toolchain is that of rust-toolchain.toml. To pin it for good, add its digest: IMAGE:TAG@sha256:…
ARG RUST_IMAGE=docker.io/library/rust:1.95.0-slim-bookworm

FROM --platform=$BUILDPLATFORM $RUST_IMAGE AS build
# Debian names the compiler of the machine's own architecture in the same way as those for others.
ENV CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x86_64-linux-gnu-gcc
WORKDIR /untaint
ARG TARGETARCH
RUN set -eu; \
    case $TARGETARCH in \
        amd64) cpu=x86_64 package=gcc-x86-64-linux-gnu ;; \
        arm64) cpu=aarch64 package=gcc-aarch64-linux-gnu ;; \
        *) echo "no target for the architecture '$TARGETARCH'" >&2; exit 1 ;; \
    esac; \
    if ! command -v "$cpu-linux-gnu-gcc"; then \
        apt-get update; \
        apt-get install --yes --no-install-recommends "$package" "libc6-dev-$TARGETARCH-cross"; \
    fi; \
    rustup target add "$cpu-unknown-linux-gnu"; \
    echo "$cpu-unknown-linux-gnu" >/target
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/untaint/target,sharing=locked \
    target=$(cat /target) && \
    cargo build --release --locked --bin untaint --target "$target" && \
    cp "target/$target/release/untaint" /usr/local/bin/untaint

FROM scratch
LABEL org.opencontainers.image.title="untaint" \
      org.opencontainers.image.description="Removes a Kubernetes start-up taint from its own Node once the node is really ready" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /usr/local/bin/untaint /untaint
COPY LICENSE /LICENSE
# Root without capabilities, as the manifests run it: CNI configurations are often for root alone.
USER 0:0
ENTRYPOINT ["/untaint"]
