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
    && apt-get install --yes --no-install-recommends binutils python3-venv \
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
COPY pyproject.toml recognizer.txt scripts/requirements.py ./
COPY clients/pyproject.toml clients/
COPY server/pyproject.toml server/
# The tables of symbols of these libraries, whose results were compared without them, are a fifth of the image.
RUN python3 requirements.py . 'multifacet[server,gateway,entities]' > requirements.txt \
    && /opt/facets/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement recognizer.txt \
    && /opt/facets/bin/pip install --no-cache-dir --constraint constraints.txt --requirement requirements.txt \
    && find /opt/facets -depth \( -name __pycache__ -o -name tests -path '*/site-packages/*/tests' \) -exec rm -rf {} + \
    && rm -rf /opt/facets/lib/python3*/site-packages/torch/include \
    && find /opt/facets/lib/python3*/site-packages/torch/bin -type f ! -name torch_shm_manager -delete \
    && cd /opt/facets/lib/python3*/site-packages \
    && find torch spacy scipy blis thinc srsly preshed cymem murmurhash rapidfuzz grpc tokenizers hf_xet -name '*.so' \
        -exec strip --strip-unneeded {} +

FROM dependencies AS wheels
RUN /opt/facets/bin/pip install --no-cache-dir --constraint constraints.txt build hatchling
COPY README.md LICENSE NOTICE ./
COPY scripts/build_packages.py scripts/model_package.toml scripts/
COPY proto proto
COPY clients clients
COPY server server
COPY facets facets
COPY models models
# The default models and those that they borrow from.
RUN /opt/facets/bin/python scripts/build_packages.py --wheels --out /wheels \
        multifacet-client multifacet-server multifacet \
        facets-en facets-passages-small-en facets-passages-en facets-relations-en facets-papers-en

FROM base
LABEL org.opencontainers.image.title="facets" \
      org.opencontainers.image.description="Multi-facet text embeddings and search over gRPC" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=dependencies /opt/facets /opt/facets
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    /opt/facets/bin/pip install --no-cache-dir --no-deps --no-index /wheels/*.whl \
    && useradd --system --uid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin facets \
    && install --directory --owner facets --group facets /data
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
