/**
 * Configurations of the gateways under test. A comparison reads this file from each of the two checkouts, because
 * configuration keys may differ between them; it therefore imports nothing.
 */

/** Additions to the base configuration. */
export interface GatewayFeatures {
  /** Members of the `kernel` section. */
  readonly kernel?: Readonly<Record<string, unknown>>
  /** Sections of plugins; a section enables its plugin. */
  readonly plugins?: Readonly<Record<string, unknown>>
}

export interface BaseOptions {
  readonly port: number
  readonly apiKey: string
  /** Workers of the configuration. */
  readonly workerPorts: readonly number[]
}

/** Section of one worker that is an external vendor. */
function vendorAt(port: number, provider: 'anthropic' | 'openai') {
  const vendor = {
    url: `http://127.0.0.1:${port}`,
    runtime_type: 'external',
    provider,
    api_key: 'bench',
    models: [{ id: 'bench' }],
  }
  return { workers: [vendor] }
}

export const configurations = {
  /** One data thread, an API key and metrics. */
  gatewayConfig({ port, apiKey, workerPorts }: BaseOptions, { kernel, plugins }: GatewayFeatures): object {
    return {
      kernel: {
        host: '127.0.0.1',
        port,
        threads: 1,
        log: { level: 'warn', access: false },
        shutdown: { graceMs: 0, settleMs: 0 },
        ...kernel,
      },
      plugins: {
        auth: { apiKey },
        health: {},
        metrics: { port: 0 },
        generations: {},
        'http-workers': {},
        openapi: {},
        policies: {},
        chat: {},
        workers: { urls: workerPorts.map((workerPort) => `http://127.0.0.1:${workerPort}`) },
        ...plugins,
      },
    }
  },

  /** Chats are decoded into generation events and encoded again. */
  normalizedChat(): GatewayFeatures {
    return { plugins: { chat: { chat: 'normalize' } } }
  },

  /** Responses with a history in that folder. */
  storedResponses(dir: string): GatewayFeatures {
    return {
      plugins: { storage: { dir }, history: {}, responses: {} },
    }
  },

  /** The same before one worker: an external vendor that serves the Responses API. */
  responsesVendorAt(port: number, dir: string): GatewayFeatures {
    return { plugins: { storage: { dir }, history: {}, responses: {}, workers: vendorAt(port, 'openai') } }
  },

  /** Messages that are translated into chats. */
  messages(): GatewayFeatures {
    return { plugins: { messages: {} } }
  },

  /** One worker: an external vendor that serves the Messages API. */
  vendorAt(port: number): GatewayFeatures {
    return { plugins: { messages: {}, workers: vendorAt(port, 'anthropic') } }
  },

  /** One worker that serves gRPC. */
  grpcWorkerAt(port: number, labels: object = {}): GatewayFeatures {
    const workers = [{ url: `grpc://127.0.0.1:${port}`, labels }]
    return { plugins: { grpc: {}, parsers: {}, tokenizers: {}, workers: { workers } } }
  },

  /** Modules of that folder, with suspensions of `coolOffMs` milliseconds after repeated failures. */
  wasmModules(root: string, poolThreads: number, coolOffMs: number): GatewayFeatures {
    return {
      plugins: { wasm: { roots: [root], poolThreads, breaker: { coolOffMs } } },
    }
  },

  /** Policy, retries, breakers, and limits that reject nothing: only the accounting is measured. */
  production(): GatewayFeatures {
    return {
      kernel: { policy: 'cache_aware', retry: { maxAttempts: 5 }, breaker: { enabled: true } },
      plugins: {
        limits: {
          maxConcurrentRequests: 10_000,
          queueSize: 1_000,
          tenants: { default: { requestsPerMinute: 1_000_000_000, tokensPerMinute: 1_000_000_000 } },
        },
      },
    }
  },
}
