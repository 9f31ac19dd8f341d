# syntax=docker/dockerfile:1
# Everything is made on the machine that builds, for the platform that it is for: the last stages only copy. Give BASE
# by digest for a build that can be repeated.
ARG BASE=python:3.12-slim-bookworm
# For `--target spark` name an image of Spark whose python3 has BASE's minor version: packages are compiled for it. No
# image of Spark fits every BASE, so there is none by default, and BASE itself has no Spark.
ARG SPARK_BASE=${BASE}

FROM --platform=$BUILDPLATFORM ${BASE} AS build
ARG TARGETARCH=amd64
# Files with equal contents and times make equal layers.
ARG SOURCE_DATE_EPOCH=0
ENV UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=1
RUN python3 -m venv /opt/uv && /opt/uv/bin/pip install --no-cache-dir uv==0.13.9
WORKDIR /src
COPY pyproject.toml uv.lock README.md LICENSE ./
COPY scripts/install.sh scripts/
RUN sh scripts/install.sh dependencies /opt/ballast $TARGETARCH
COPY operator operator
COPY docs docs
RUN sh scripts/install.sh program /opt/ballast

FROM build AS build-spark
RUN sh scripts/install.sh dependencies /opt/ballast $TARGETARCH spark && sh scripts/install.sh program /opt/ballast

# Spark with Ballast for jobs: the data source, history, backtest, audit and routing.
FROM ${SPARK_BASE} AS spark
COPY --from=build-spark /opt/ballast /opt/ballast
ENV PYTHONPATH=/opt/ballast

FROM ${BASE} AS operator
COPY --from=build /opt/ballast /opt/ballast
ENV PYTHONPATH=/opt/ballast PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["python3", "-m", "ballast"]
CMD ["--help"]
