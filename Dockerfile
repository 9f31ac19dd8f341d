# syntax=docker/dockerfile:1
ARG BASE=python:3.12-slim-bookworm

FROM ${BASE} AS build
ENV UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/ballast \
    UV_SYSTEM_CERTS=1
RUN python3 -m venv /opt/uv && /opt/uv/bin/pip install --no-cache-dir uv==0.13.9
WORKDIR /src
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN /opt/uv/bin/uv sync --frozen --no-default-groups --no-install-project
COPY operator operator
COPY docs docs
RUN /opt/uv/bin/uv sync --frozen --no-default-groups --no-editable

FROM ${BASE}
COPY --from=build /opt/ballast /opt/ballast
ENV PATH=/opt/ballast/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["ballast"]
CMD ["--help"]
