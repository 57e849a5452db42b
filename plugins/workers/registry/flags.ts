/** Flags and variables of registered and watched workers. */
import type { ConfigFlag } from '#kernel'

/** A secret that other programs know under the same name. */
const adminKey = (env: string, service: string): ConfigFlag => ({
  flag: null,
  env,
  path: ['plugins', 'workers', 'adminKeys', service],
  kind: 'text',
  help: `admin key of ${service}`,
  isSecret: true,
  enablesNothing: true,
})

export const workersFlags: readonly ConfigFlag[] = [
  {
    flag: 'worker-url',
    env: 'WEIR_WORKER_URLS',
    path: ['plugins', 'workers', 'urls'],
    kind: 'list',
    placeholder: 'url',
    help: 'worker to register at start; repeatable',
  },
  {
    flag: 'dp-aware',
    env: 'WEIR_DP_AWARE',
    path: ['plugins', 'workers', 'dpAware'],
    kind: 'switch',
    help: 'each data-parallel rank of an engine is a worker of its own',
  },
  {
    flag: 'engine-metrics',
    env: null,
    path: ['plugins', 'workers', 'engineMetrics'],
    kind: 'switch',
    help: 'show what engines say about their load as metrics',
  },
  {
    flag: 'load-monitor-interval',
    env: null,
    path: ['plugins', 'workers', 'loadMonitorIntervalSecs'],
    kind: 'number',
    placeholder: 'seconds',
    help: 'how often engines are asked for their load while somebody reads it',
  },
  adminKey('OPENAI_ADMIN_KEY', 'openai'),
  adminKey('XAI_ADMIN_KEY', 'xai'),
  adminKey('ANTHROPIC_ADMIN_KEY', 'anthropic'),
  adminKey('GEMINI_ADMIN_KEY', 'gemini'),
]
