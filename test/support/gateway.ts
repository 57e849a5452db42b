/** Starts a real gateway for tests: in this process on one thread, on free ports, silent, ended by the test. */
import type { Plugin } from '../../kernel/plugin/define-plugin.ts'
import { openGateway, type TestGateway } from '../../plugins/testing/start-gateway.ts'

export type { TestGateway }

export interface TestGatewayOptions {
  /** Additional kernel settings. */
  readonly kernel?: Record<string, unknown>
  /** Default: auth, health, openapi, pairs, policies, proxy, workers. Always with http-workers, unless it is false. Plugins that these enable are limited to required services. */
  readonly plugins?: Record<string, unknown>
  /** Plugins of the test, enabled with the section of their name or an empty one. */
  readonly own?: readonly Plugin[]
}

const DEFAULT_PLUGINS: Record<string, unknown> = {
  auth: {},
  health: {},
  openapi: {},
  pairs: {},
  policies: {},
  chat: {},
  workers: {},
}

/** Plugins that others would enable by default: a test names those that it needs. */
const NOT_BY_DEFAULT = {
  auth: false,
  grpc: false,
  history: false,
  pairs: false,
  policies: false,
  storage: false,
}

/** Starts a gateway with short intervals: workers settle at once and probes are frequent. */
export function startGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const { log, ...kernel } = (options.kernel ?? {}) as Record<string, object>
  return openGateway({
    own: options.own,
    env: {},
    kernel: { ...kernel, log: { level: 'silent', ...log } },
    plugins: { ...NOT_BY_DEFAULT, ...(options.plugins ?? DEFAULT_PLUGINS) },
  })
}
