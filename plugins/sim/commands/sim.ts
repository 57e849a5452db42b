/** `weir sim`: runs the simulated engine alone, without a gateway around it. */
import type { Command } from 'commander'
import type { ConfigFlag } from '#kernel'
import { addFlags, valuesOf } from '../../cli/config-options.ts'
import { flagsOfSchema } from '../../cli/configuration/schema-flags.ts'
import { simConfig } from '../config.ts'

const SIM_FLAGS: readonly ConfigFlag[] = [
  ...flagsOfSchema(
    simConfig,
    ['plugins', 'sim'],
    [
      { flag: 'host', placeholder: 'address', path: ['listen', 'host'] },
      { flag: 'port', placeholder: 'port', path: ['listen', 'port'] },
      { flag: 'model', placeholder: 'id', path: ['models'] },
      { flag: 'ttft-ms', placeholder: 'ms', path: ['ttftMs'] },
      { flag: 'itl-ms', placeholder: 'ms', path: ['itlMs'] },
      { flag: 'tokens', placeholder: 'count', path: ['tokens'] },
      { flag: 'seed', placeholder: 'number', path: ['seed'] },
      { flag: 'engine', placeholder: 'name', path: ['runtime'] },
      // The former name, which scripts use.
      { flag: 'runtime', placeholder: 'name', path: ['runtime'] },
      { flag: 'protocol', placeholder: 'name', path: ['protocol'] },
      { flag: 'responses', path: ['responses'] },
      { flag: 'timing', placeholder: 'model', path: ['engine', 'model'] },
      { flag: 'count', placeholder: 'number', path: ['count'] },
      { flag: 'role', placeholder: 'role', path: ['role'] },
      { flag: 'record', path: ['record'] },
      { flag: 'api-key', placeholder: 'key', path: ['apiKey'] },
      { flag: 'embedding-dimensions', placeholder: 'count', path: ['embeddingDimensions'] },
      { flag: 'max-model-len', placeholder: 'tokens', path: ['maxModelLen'] },
      { flag: 'fixed-reply', path: ['fixedResponse'] },
    ],
  ),
  {
    flag: 'log-level',
    path: ['kernel', 'log', 'level'],
    kind: 'text',
    placeholder: 'level',
    help: 'least severe level that is logged; one of trace, debug, info, warn, error, silent (default: info)',
  },
]

/** Configuration of the kernel for an engine with its own listener. */
const BASE = {
  kernel: {
    auth: 'off',
    threads: 0,
    log: { access: false },
    // No balancer watches a simulated engine, so it ends at once.
    shutdown: { settleMs: 0 },
  },
  plugins: { sim: {}, tokenizers: {} },
}

const EXAMPLES = `
Examples:
  weir sim --model demo --port 9001
  weir sim --model llama --model qwen --ttft-ms 200 --itl-ms 20
  weir sim --engine vllm --api-key engine-secret
  weir sim --protocol grpc --engine vllm                 an engine over gRPC
  weir sim --timing batched --count 8                    eight engines with queue and prefix cache
  weir sim --engine llamacpp                             with the quirks of a real one

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
