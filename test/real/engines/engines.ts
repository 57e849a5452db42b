/** The engines that setup.sh installs: how each is started, and how it is registered. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const SCRIPTS = fileURLToPath(new URL('./', import.meta.url))
const INSTALLED = `${SCRIPTS}.engines`
/** The model in the form of Hugging Face. Its path is the name under which two of the engines serve it. */
const FOLDER = `${INSTALLED}/folder`
/** Without it MLX computes five times slower. */
const BLAS = '/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0'

export interface RealEngine {
  readonly name: 'llamacpp' | 'mlx' | 'transformers'
  readonly model: string
  readonly command: (port: number, model: string, keys: readonly string[]) => readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Members of its registration beside the URL. */
  readonly worker: object
  /** Requests that are not sent: the longest prompts take minutes without a context limit, and some are not supported. */
  readonly without?: RegExp
}

export const llamacpp: RealEngine = {
  name: 'llamacpp',
  model: 'smollm2',
  command: (port, model, keys) => [
    `${INSTALLED}/llamacpp/bin/python`,
    `${SCRIPTS}serve_llamacpp.py`,
    `${INSTALLED}/model.gguf`,
    String(port),
    model,
    ...keys,
  ],
  worker: {},
}

const mlx: RealEngine = {
  name: 'mlx',
  model: FOLDER,
  command: (port, model) => [
    `${INSTALLED}/mlx/bin/mlx_lm.server`,
    ...['--model', model, '--host', '127.0.0.1', '--port', String(port)],
  ],
  env: { MLX_DISABLE_COMPILE: '1', ...(existsSync(BLAS) && { LD_PRELOAD: BLAS }) },
  worker: { runtime_type: 'mlx' },
  without: /overflow|list of prompts|token ids/,
}

const transformers: RealEngine = {
  name: 'transformers',
  model: FOLDER,
  command: (port, model) => [
    `${INSTALLED}/transformers/bin/transformers`,
    ...['serve', model, '--host', '127.0.0.1', '--port', String(port), '--device', 'cpu'],
  ],
  worker: {},
  without: /overflow/,
}

export const ENGINES: readonly RealEngine[] = [llamacpp, mlx, transformers]

export const isInstalled = ({ name }: RealEngine) =>
  existsSync(`${INSTALLED}/model.gguf`) && existsSync(`${INSTALLED}/${name}/installed`)

export function environmentOf({ env }: RealEngine): NodeJS.ProcessEnv {
  // One thread each, as more only compete for the cores with the gateway. MLX lists nothing if the cache folder is missing.
  const threads = { OPENBLAS_NUM_THREADS: '1', OMP_NUM_THREADS: '1' }
  return { ...process.env, ...threads, HF_HUB_OFFLINE: '1', HF_HUB_CACHE: `${INSTALLED}/cache`, ...env }
}
