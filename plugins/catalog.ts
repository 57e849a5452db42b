/** Every plugin that comes with the gateway: the composition root. Nothing is imported before it is enabled. */
import type { PluginCatalog } from '../kernel/load-plugins.ts'

export const catalog: PluginCatalog = {
  auth: () => import('./access/auth/index.ts'),
  chat: () => import('./protocols/chat/index.ts'),
  console: () => import('./operations/console/index.ts'),
  conversations: () => import('./state/conversations/index.ts'),
  debug: () => import('./operations/debug/index.ts'),
  generations: () => import('./protocols/generations/index.ts'),
  grpc: () => import('./workers/grpc/index.ts'),
  health: () => import('./workers/health/index.ts'),
  history: () => import('./state/history/index.ts'),
  'http-workers': () => import('./workers/http/index.ts'),
  keys: () => import('./access/keys/index.ts'),
  limits: () => import('./access/limits/index.ts'),
  kubernetes: () => import('./workers/kubernetes/index.ts'),
  metrics: () => import('./operations/metrics/index.ts'),
  mcp: () => import('./tools/mcp/index.ts'),
  mesh: () => import('./mesh/mesh/index.ts'),
  'mesh-valkey': () => import('./mesh/valkey/index.ts'),
  messages: () => import('./protocols/messages/index.ts'),
  openapi: () => import('./operations/openapi/index.ts'),
  pairs: () => import('./workers/pairs/index.ts'),
  parsers: () => import('./models/parsers/index.ts'),
  policies: () => import('./routing/policies/index.ts'),
  postgres: () => import('./state/postgres/index.ts'),
  reload: () => import('./operations/reload/index.ts'),
  responses: () => import('./protocols/responses/index.ts'),
  sim: () => import('./sim/index.ts'),
  storage: () => import('./state/storage/index.ts'),
  tokenizers: () => import('./models/tokenizers/index.ts'),
  tracing: () => import('./operations/tracing/index.ts'),
  'trusted-proxies': () => import('./access/trusted-proxies/index.ts'),
  usage: () => import('./access/usage/index.ts'),
  'virtual-models': () => import('./routing/virtual-models/index.ts'),
  wasm: () => import('./wasm/index.ts'),
  workers: () => import('./workers/registry/index.ts'),
}

/** Prefixes of the paths of their routes by plugin, for the errors of plugins that are not enabled. */
export const routePrefixes: Readonly<Record<string, readonly string[]>> = {
  chat: [
    '/generate',
    '/get_model_info',
    '/get_server_info',
    '/rerank',
    '/v1/chat',
    '/v1/classify',
    '/v1/completions',
    '/v1/embeddings',
    '/v1/models',
    '/v1/rerank',
  ],
  console: ['/console'],
  conversations: ['/v1/conversations'],
  debug: ['/debug'],
  health: ['/engine_metrics', '/health', '/health_generate', '/liveness', '/readiness'],
  keys: ['/keys'],
  limits: ['/limits'],
  mesh: ['/ha'],
  messages: ['/api/hello', '/v1/messages'],
  openapi: ['/openapi.json'],
  parsers: ['/parse'],
  reload: ['/config'],
  responses: ['/v1/responses'],
  tokenizers: ['/v1/detokenize', '/v1/tokenize', '/v1/tokenizers'],
  usage: ['/usage'],
  wasm: ['/wasm'],
  workers: ['/flush_cache', '/get_loads', '/start_profile', '/stop_profile', '/workers'],
}

/**
 * Plugin that is enabled for a service which an enabled plugin cannot do without and no enabled plugin provides, by the
 * name of the service's token.
 */
export const defaultProviders: Readonly<Record<string, string>> = {
  generations: 'generations',
  history: 'history',
  'key-ring': 'auth',
  'output-parsers': 'parsers',
  tokenizers: 'tokenizers',
  'worker-registry': 'workers',
}
