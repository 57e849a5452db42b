/** Command-line flags and environment variables of the workers plugin. */
import type { ConfigFlag } from '#kernel'

/** Environment variable under the name that other programs use too. */
const adminKey = (env: string, service: string): ConfigFlag => ({
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
    path: ['plugins', 'workers', 'engineMetrics'],
    kind: 'switch',
    help: 'export engine load as metrics',
  },
  {
    flag: 'load-monitor-interval',
    path: ['plugins', 'workers', 'loadMonitorIntervalSecs'],
    kind: 'number',
    placeholder: 'seconds',
    help: 'interval at which engines are polled for their load',
  },
  adminKey('OPENAI_ADMIN_KEY', 'openai'),
  adminKey('XAI_ADMIN_KEY', 'xai'),
  adminKey('ANTHROPIC_ADMIN_KEY', 'anthropic'),
  adminKey('GEMINI_ADMIN_KEY', 'gemini'),
]
