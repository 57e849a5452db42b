/** `weir sim`: runs the simulated engine alone, without a gateway around it. */
import type { Command } from 'commander'
import type { ConfigFlag } from '#kernel'
import { addFlags, valuesOf } from '../../cli/config-options.ts'

const setting = (name: string) => ['plugins', 'sim', name]

const SIM_FLAGS: readonly ConfigFlag[] = [
  {
    flag: 'host',
    path: ['plugins', 'sim', 'listen', 'host'],
    kind: 'text',
    placeholder: 'address',
    help: 'address to listen on (default: 127.0.0.1)',
  },
  {
    flag: 'port',
    path: ['plugins', 'sim', 'listen', 'port'],
    kind: 'integer',
    placeholder: 'port',
    help: 'port to listen on; 0 takes any free one (default: 9001)',
  },
  {
    flag: 'model',
    path: setting('models'),
    kind: 'list',
    placeholder: 'id',
    help: 'model to serve; repeatable',
  },
  {
    flag: 'ttft-ms',
    path: setting('ttftMs'),
    kind: 'number',
    placeholder: 'ms',
    help: 'time to the first token, milliseconds',
  },
  {
    flag: 'itl-ms',
    path: setting('itlMs'),
    kind: 'number',
    placeholder: 'ms',
    help: 'time between tokens, milliseconds',
  },
  {
    flag: 'tokens',
    path: setting('tokens'),
    kind: 'integer',
    placeholder: 'count',
    help: 'length of an answer, unless the request asks for less',
  },
  {
    flag: 'seed',
    path: setting('seed'),
    kind: 'integer',
    placeholder: 'number',
    help: 'same seed, same text',
  },
  {
    flag: 'runtime',
    path: setting('runtime'),
    kind: 'text',
    placeholder: 'name',
    help: 'engine to imitate: sglang, vllm, trtllm or mlx',
  },
  {
    flag: 'protocol',
    path: setting('protocol'),
    kind: 'text',
    placeholder: 'name',
    help: 'http (default), or grpc: in token ids of the tokenizer that comes with the gateway',
  },
  {
    flag: 'responses',
    path: setting('responses'),
    kind: 'switch',
    help: 'speak POST /v1/responses too (default: off)',
  },
  {
    flag: 'engine',
    path: [...setting('engine'), 'model'],
    kind: 'text',
    placeholder: 'model',
    help: 'paced (default), or batched: queue, prefill, decode and prefix cache as engines have them',
  },
  {
    flag: 'count',
    path: setting('count'),
    kind: 'integer',
    placeholder: 'number',
    help: 'engines in this process, on consecutive ports (default: 1)',
  },
  {
    flag: 'role',
    path: setting('role'),
    kind: 'text',
    placeholder: 'role',
    help: 'regular, prefill or decode (default: regular)',
  },
  {
    flag: 'record',
    path: setting('record'),
    kind: 'switch',
    help: 'remember the last requests for GET /sim/requests (default: on)',
  },
  {
    flag: 'api-key',
    path: setting('apiKey'),
    kind: 'text',
    placeholder: 'key',
    help: 'key that requests must carry',
    isSecret: true,
  },
  {
    flag: 'embedding-dimensions',
    path: setting('embeddingDimensions'),
    kind: 'integer',
    placeholder: 'count',
    help: 'length of embedding vectors',
  },
  {
    flag: 'max-model-len',
    path: setting('maxModelLen'),
    kind: 'integer',
    placeholder: 'tokens',
    help: 'longest prompt and answer together, tokens',
  },
  {
    flag: 'fixed-reply',
    path: setting('fixedReply'),
    kind: 'switch',
    help: 'prepared answers without a look at the request, for load tests',
  },
  {
    flag: 'log-level',
    path: ['kernel', 'log', 'level'],
    kind: 'text',
    placeholder: 'level',
    help: 'trace, debug, info, warn, error or silent (default: info)',
  },
]

/** What stays of a kernel around an engine that has its own listener. */
const BASE = {
  kernel: {
    auth: 'off',
    threads: 0,
    log: { access: false },
    // No balancer watches a simulated engine: it ends at once.
    shutdown: { settleMs: 0 },
  },
  plugins: { sim: {}, tokenizers: {} },
}

const EXAMPLES = `
Examples:
  weir sim --model demo --port 9001
  weir sim --model llama --model qwen --ttft-ms 200 --itl-ms 20
  weir sim --runtime vllm --api-key engine-secret
  weir sim --protocol grpc --runtime vllm                an engine over gRPC
  weir sim --engine batched --count 8                    eight engines with queue and prefix cache

Then, in front of it: weir serve --worker-url http://127.0.0.1:9001
Over gRPC: weir serve --plugin grpc --plugin tokenizers --plugin parsers --worker-url grpc://127.0.0.1:9001`

export function defineSim(command: Command): void {
  addFlags(command, SIM_FLAGS)
  command.addHelpText('after', EXAMPLES).action(() => runSim(command))
}

async function runSim(command: Command): Promise<void> {
  const [{ loadConfig }, { readFlags }, { pluginSchemas }] = await Promise.all([
    import('../../cli/configuration/load.ts'),
    import('../../cli/configuration/settings.ts'),
    import('../../cli/plugin-schemas.ts'),
  ])
  const overrides = readFlags(valuesOf(command, SIM_FLAGS), SIM_FLAGS)
  const config = await loadConfig({ text: JSON.stringify(BASE), overrides, env: {}, pluginSchemas })
  const { listen, models, protocol } = config.plugins.sim as {
    protocol: string
    listen: { host: string; port: number }
    models: string[]
  }

  const { runGateway } = await import('../../cli/run-gateway.ts')
  await runGateway(config, {
    apiListener: false,
    onReady({ bootMs }) {
      const place =
        listen.port === 0
          ? 'on the port in the log line above'
          : `at ${protocol}://${listen.host}:${listen.port}`
      const took = `ready after ${Math.round(bootMs)} ms`
      process.stderr.write(`Weir's simulated engine is ${took} ${place}, serving ${models.join(', ')}\n`)
    },
  })
}
