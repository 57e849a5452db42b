# The gateway as an image: docker build -t weir . && docker run -p 30000:30000 -e WEIR_API_KEY weir serve --worker-url http://10.0.0.1:8000
FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json ./
COPY kernel kernel
COPY plugins plugins
COPY wasm-sdk wasm-sdk
COPY proto proto
RUN npm run --silent build

FROM node:22-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:22-bookworm-slim
# API, metrics and probes, where a container network reaches them.
ENV NODE_ENV=production WEIR_HOST=0.0.0.0 WEIR_PORT=30000 WEIR_METRICS_HOST=0.0.0.0 WEIR_METRICS_PORT=29000 WEIR_PROBE_HOST=0.0.0.0 WEIR_PROBE_PORT=30001
# The C library returns freed memory to the system; by default it keeps what a burst of large requests needed.
ENV MALLOC_MMAP_THRESHOLD_=1048576 MALLOC_TRIM_THRESHOLD_=1048576
WORKDIR /app
COPY package.json LICENSE ./
COPY plugins/models/tokenizers/sample plugins/models/tokenizers/sample
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
USER node
EXPOSE 30000 29000 30001
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.WEIR_PROBE_PORT}/liveness`).then((reply) => process.exit(reply.ok ? 0 : 1), () => process.exit(1))"]
# Collections of new objects keep 8 MB per thread instead of 32.
ENTRYPOINT ["node", "--max-semi-space-size=4", "dist/plugins/cli.js"]
CMD ["serve"]
