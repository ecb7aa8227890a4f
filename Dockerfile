FROM python:3.11-slim AS build
WORKDIR /source
COPY requirements.lock ./
# The pinned set, each file checked against its hash. What only the tests need stays behind in this stage.
RUN pip download --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock -d /wheels
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
RUN python -m venv /askbook \
 && /askbook/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --no-index --find-links /wheels \
    '.[server,postgres,model,redis,mcp,telemetry]'

FROM python:3.11-slim
COPY --from=build /askbook /askbook
RUN useradd --uid 10001 --no-create-home askbook && install -d -o askbook -g askbook /data
ENV PATH=/askbook/bin:$PATH PYTHONUNBUFFERED=1 ASKBOOK_HOME=/data ASKBOOK_HOST=0.0.0.0 ASKBOOK_LOCAL_OWNER=0 ASKBOOK_LOG_FORMAT=json
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["askbook"]
CMD ["serve"]
