# Layers, by how rarely they change: system Python, PyTorch, other packages, Facets with its models.
# Debian's packages are not pinned: a pinned version vanishes with the next security update.
FROM debian:12-slim AS base
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/*

FROM base AS dependencies
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/facets
WORKDIR /source
COPY constraints.txt scripts/install_torch.py ./
# A container without an NVIDIA GPU needs no CUDA; --build-arg TORCH_BACKEND=cuda brings it.
ARG TORCH_BACKEND=cpu
ARG TORCH_INDEX=
RUN /opt/facets/bin/pip install --no-cache-dir --constraint constraints.txt pip \
    && PIP_NO_CACHE_DIR=1 /opt/facets/bin/python install_torch.py \
        --backend "$TORCH_BACKEND" --index-url "$TORCH_INDEX" --constraint constraints.txt
COPY pyproject.toml scripts/requirements.py ./
RUN python3 requirements.py pyproject.toml server > requirements.txt \
    && /opt/facets/bin/pip install --no-cache-dir --constraint constraints.txt --requirement requirements.txt \
    && find /opt/facets -depth \( -name __pycache__ -o -name tests -path '*/site-packages/*/tests' \) -exec rm -rf {} + \
    && rm -rf /opt/facets/lib/python3*/site-packages/torch/include \
    && find /opt/facets/lib/python3*/site-packages/torch/bin -type f ! -name torch_shm_manager -delete

FROM dependencies AS wheel
COPY README.md LICENSE NOTICE ./
COPY proto proto
COPY clients clients
COPY server server
COPY facets facets
COPY models models
RUN /opt/facets/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM base
LABEL org.opencontainers.image.title="facets" \
      org.opencontainers.image.description="Multi-facet text embeddings and search over gRPC" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=dependencies /opt/facets /opt/facets
RUN --mount=type=bind,from=wheel,source=/wheel,target=/wheel \
    /opt/facets/bin/pip install --no-cache-dir --no-deps --no-index /wheel/*.whl \
    && useradd --system --uid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin facets \
    && install --directory --owner facets --group facets /data
ENV PATH=/opt/facets/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    FACETS_SERVER_DATA_DIR=/data
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 50051
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s --retries=3 CMD ["facets", "health"]
ENTRYPOINT ["facets-server"]
