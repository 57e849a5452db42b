/** Every plugin that comes with the gateway: the composition root. Nothing is imported before it is enabled. */
import type { PluginCatalog } from '../kernel/serve.ts'

export const catalog: PluginCatalog = {
  auth: () => import('./auth/index.ts'),
  'chat-engine': () => import('./chat-engine/index.ts'),
  conversations: () => import('./conversations/index.ts'),
  debug: () => import('./debug/index.ts'),
  grpc: () => import('./grpc/index.ts'),
  health: () => import('./health/index.ts'),
  history: () => import('./history/index.ts'),
  'http-workers': () => import('./http-workers/index.ts'),
  limits: () => import('./limits/index.ts'),
  kubernetes: () => import('./kubernetes/index.ts'),
  mcp: () => import('./mcp/index.ts'),
  openapi: () => import('./openapi/index.ts'),
  pairs: () => import('./pairs/index.ts'),
  parsers: () => import('./parsers/index.ts'),
  policies: () => import('./policies/index.ts'),
  postgres: () => import('./postgres/index.ts'),
  proxy: () => import('./proxy/index.ts'),
  responses: () => import('./responses/index.ts'),
  sim: () => import('./sim/index.ts'),
  storage: () => import('./storage/index.ts'),
  tokenizers: () => import('./tokenizers/index.ts'),
  tracing: () => import('./tracing/index.ts'),
  wasm: () => import('./wasm/index.ts'),
  workers: () => import('./workers/index.ts'),
}
