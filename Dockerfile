# The image contains one static program and its license, for amd64 or arm64.
#
#   make image IMAGE=registry.example.com/untaint:0.1.0 BUILD='docker buildx build --push'
#
# The build cross-compiles for the other architecture. An emulated build would take an hour.

# The version of Rust is that of rust-toolchain.toml. A tag can be moved. To pin the image, use IMAGE:TAG@sha256:….
ARG RUST_IMAGE=docker.io/library/rust:1.95.0-slim-bookworm

FROM --platform=$BUILDPLATFORM $RUST_IMAGE AS build
# In Debian, native compilers and cross compilers have names of the same form. `make reproducible` sets these linkers too.
ENV CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x86_64-linux-gnu-gcc
# The tools that .ci/release needs, with the versions of `make tools`.
RUN cargo install --locked --debug cargo-auditable@0.7.7 rust-audit-info@0.5.4
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
# The time of the files in the image. With a fixed time, the layer is always the same.
ARG SOURCE_DATE_EPOCH=0
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/untaint/target,sharing=locked \
    target=$(cat /target) && \
    .ci/release "$target" && \
    install -D --mode 755 "target/$target/release/untaint" /image/untaint && \
    install --mode 644 LICENSE /image/LICENSE && \
    touch --date "@$SOURCE_DATE_EPOCH" /image/* /image

FROM scratch
ARG REVISION
LABEL org.opencontainers.image.title="untaint" \
      org.opencontainers.image.description="Removes a Kubernetes start-up taint from its own Node once the node is really ready" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /image /
# The manifests set uid 0 where untaint must read CNI configurations that only root may read.
USER 65532:65532
ENTRYPOINT ["/untaint"]
