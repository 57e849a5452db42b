/** Import rules: plugins import the public API of the kernel; inside the kernel, layers import lower layers only. */
import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Arrow, arrows, isPackage, isTest, moduleOf } from './import-graph.ts'

const show = (arrow: Arrow) => `${arrow.from}:${arrow.line} imports ${arrow.to}`

function breaches(isBreach: (arrow: Arrow) => boolean, among: readonly Arrow[] = arrows): string[] {
  return among.filter(isBreach).map(show)
}

/** Layers of the kernel from bottom to top; a layer imports only lower ones. */
const LAYERS: readonly (readonly string[])[] = [
  ['contracts', 'wire'],
  ['errors'],
  ['schema'],
  ['observe', 'config'],
  ['threads'],
  ['balance'],
  ['upstream'],
  ['http'],
  ['plugin'],
]

/** Contracts have no behaviour; they may import these types of higher layers, which loads nothing. */
const UPWARD_TYPES: Readonly<Record<string, string>> = {
  'kernel/contracts/hook.ts': 'kernel/errors/gateway-error.ts', // onError takes and returns the error class
  'kernel/contracts/error-format.ts': 'kernel/errors/gateway-error.ts', // formats render the error class
  'kernel/contracts/request.ts': 'kernel/schema/validate.ts', // ctx.body(validator)
  'kernel/contracts/generation/generation.ts': 'kernel/errors/gateway-error.ts', // a generation fails with the error class
  'kernel/contracts/pair.ts': 'kernel/errors/gateway-error.ts', // a pair fails with the error class
  'kernel/contracts/relay-context.ts': 'kernel/errors/gateway-error.ts', // a budget that is exceeded returns the error class
  'kernel/contracts/response-format.ts': 'kernel/errors/gateway-error.ts', // a check of a body returns the error class
  'kernel/contracts/upstream.ts': 'kernel/errors/gateway-error.ts', // attempts fail with the error class
  'kernel/wire/token-usage.ts': 'kernel/contracts/request.ts', // usage as plugins see it
  'kernel/contracts/transport.ts': 'kernel/errors/gateway-error.ts', // transports may return the error class
}

/** Entries: the command, the threads, and what the package exports. */
const isEntryFile = (file: string) => /^plugins\/(cli|serve|catalog|public|testing)(\.ts$|\/)/.test(file)
/** Subcommands of `weir` are part of their plugin. */
const isCommand = (file: string) => /^plugins\/.+\/commands\//.test(file)

/** Each package has one owner, so that it can be replaced in one place. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  // The simulated worker of the benchmarks must be cheaper than the gateway in front of it.
  'uWebSockets.js': ['kernel/http', 'bench/support'],
  ajv: ['kernel/schema', 'test/fuzz'],
  pino: ['kernel/observe'],
  'prom-client': ['plugins/operations/metrics'],
  yaml: ['plugins/cli', 'plugins/workers/kubernetes', 'test/usage'],
  ioredis: ['plugins/mesh/valkey', 'test/support'],
  level: ['plugins/state/storage', 'test/contract'],
  pg: ['plugins/state/postgres', 'test/contract'],
  piscina: ['plugins/shared'],
  preact: ['plugins/operations/console/app'],
  'preact/hooks': ['plugins/operations/console/app'],
  'playwright-core': ['test/support', 'test/real'],
  'axe-core': ['test/support'],
  esbuild: ['plugins/build.ts', 'plugins/operations/console'],
  jose: ['plugins/access/auth', 'test/api'],
  '@extism/extism': ['plugins/wasm'],
  tokenizers: ['plugins/models/tokenizers'],
  '@grpc/grpc-js': ['plugins/workers/grpc', 'plugins/sim', 'test/support'],
  '@kubernetes/client-node': ['plugins/workers/kubernetes', 'test/usage'],
  '@modelcontextprotocol/client': ['plugins/tools/mcp'],
  '@modelcontextprotocol/server': ['test/support/mcp', 'plugins/tools/mcp', 'examples/responses-mcp'],
  '@modelcontextprotocol/node': ['test/support/mcp', 'examples/responses-mcp'],
  '@modelcontextprotocol/sdk': ['test/support/mcp'],
  '@opentelemetry/api': ['plugins/operations/tracing'],
  '@opentelemetry/core': ['plugins/operations/tracing'],
  '@opentelemetry/sdk-trace-base': ['plugins/operations/tracing'],
  '@opentelemetry/exporter-trace-otlp-proto': ['plugins/operations/tracing'],
  '@opentelemetry/resources': ['plugins/operations/tracing'],
  assemblyscript: ['plugins/wasm'],
  'assemblyscript/asc': ['plugins/wasm', 'test/fixtures'],
  'assemblyscript/binaryen': ['test/fixtures'],
  commander: ['plugins', 'test/support'],
  autocannon: ['bench/support'],
  'hdr-histogram-js': ['bench/support'],
  '@anthropic-ai/sdk': ['examples/gemini-engine', 'test/api', 'test/usage'],
  '@ai-sdk/anthropic': ['test/usage'],
  ws: ['test/api'],
  ai: ['test/usage'],
  '@ai-sdk/openai': ['test/usage'],
  '@openai/agents': ['test/usage'],
  ollama: ['examples/ollama-front'],
  openai: [
    'examples/gemini-engine',
    'examples/openai-client',
    'examples/real-engine',
    'examples/real-engine-grpc',
    'test/api',
    'test/usage',
  ],
  // The interface of the compiler, which is not stable yet.
  'typescript/unstable/sync': ['test/support/formats'],
  'weir-gateway': ['examples', 'plugins/cli/plugin-template', 'test/fixtures'],
  'weir-gateway/testing': ['bench', 'examples', 'plugins/cli/plugin-template'],
}

const layerOf = (file: string) => LAYERS.findIndex((names) => names.includes(file.split('/')[1]))

test('the kernel never imports a plugin, the wasm SDK, a test or a benchmark', () => {
  const kernel = arrows.filter(({ from }) => from.startsWith('kernel/') && !isTest(from))
  expect(breaches(({ to }) => /^(plugins|wasm-sdk|proto|test|bench|examples)\//.test(to), kernel)).toEqual([])
})

test('kernel layers import downward only', () => {
  const inside = arrows.filter(({ from, to }) => {
    return layerOf(from) >= 0 && to.startsWith('kernel/') && !isTest(from) && moduleOf(from) !== moduleOf(to)
  })
  // Boot and serve are on top, so nothing below may import them.
  const isUpward = ({ from, to }: Arrow) => layerOf(to) < 0 || layerOf(to) >= layerOf(from)
  const isAllowed = ({ from, to, isType }: Arrow) => isType && UPWARD_TYPES[from] === to
  expect(breaches((arrow) => isUpward(arrow) && !isAllowed(arrow), inside)).toEqual([])
})

test('the list of upward type imports has no unused entries', () => {
  const isUsed = ([from, to]: [string, string]) =>
    arrows.some((arrow) => arrow.from === from && arrow.to === to && arrow.isType)
  expect(Object.entries(UPWARD_TYPES).filter((entry) => !isUsed(entry))).toEqual([])
})

test('only entry files import boot and serve', () => {
  const isTop = ({ to }: Arrow) => /^kernel\/(boot|serve)\.ts$/.test(to)
  const mayImport = ({ from }: Arrow) =>
    /^kernel\/[^/]+\.ts$/.test(from) || isEntryFile(from) || from.startsWith('test/')
  expect(breaches((arrow) => isTop(arrow) && !mayImport(arrow))).toEqual([])
})

/** Pool threads import single files: `#kernel` and `#shared` would load the kernel into each of them. */
const isPoolThreadFile = ({ from, to }: Arrow) =>
  /^plugins\/(models\/tokenizers|wasm\/testing)\//.test(from) &&
  /^(plugins\/shared\/files\/|kernel\/wire\/|kernel\/installation\.ts$)/.test(to)

test('a plugin imports only #kernel, #shared, its own folder and packages', () => {
  const plugins = arrows.filter(
    ({ from }) => from.startsWith('plugins/') && !isEntryFile(from) && !isTest(from),
  )
  // The interface between modules and the gateway is defined once.
  const isAbi = ({ from, to }: Arrow) =>
    moduleOf(from) === 'plugins/wasm' && /^wasm-sdk\/(abi|settings|description)\.ts$/.test(to)
  // Commands read the configuration and print with the helpers of the program.
  const isCommandHelper = ({ from, to, isType }: Arrow) =>
    isCommand(from) && (to.startsWith('plugins/cli/') || (isType && to === 'kernel/config/loaded-config.ts'))
  // `weir history` opens the store itself, without a gateway.
  const isOfflineStore = ({ from, to }: Arrow) =>
    from === 'plugins/state/history/commands/history.ts' && /^plugins\/state\/(storage|postgres)\//.test(to)
  // Codecs of the engines' services, for clients and simulated engines.
  const isWire = ({ from, to }: Arrow) =>
    /^plugins\/(workers\/grpc|sim)$/.test(moduleOf(from)) && to.startsWith('proto/gen/')
  // Generations composes the engines, which are part of their protocols.
  const isEngine = ({ from, to }: Arrow) =>
    from === 'plugins/protocols/generations/index.ts' && /^plugins\/protocols\/[a-z]+\/engine\//.test(to)
  const isForeign = (arrow: Arrow) =>
    arrow.to.includes('/') &&
    !isPackage(arrow.to) &&
    moduleOf(arrow.to) !== moduleOf(arrow.from) &&
    !isAbi(arrow) &&
    !isCommandHelper(arrow) &&
    !isOfflineStore(arrow) &&
    !isEngine(arrow) &&
    !isPoolThreadFile(arrow) &&
    !isWire(arrow)
  expect(
    breaches(
      isForeign,
      plugins.filter(({ to }) => !to.startsWith('node:')),
    ),
  ).toEqual([])
})

test('tests of a plugin import from the kernel and test/support, never from another plugin', () => {
  const tests = arrows.filter(
    ({ from }) => from.startsWith('plugins/') && isTest(from) && !isEntryFile(from) && !isCommand(from),
  )
  expect(
    breaches(({ from, to }) => to.startsWith('plugins/') && moduleOf(to) !== moduleOf(from), tests),
  ).toEqual([])
})

test('only plugins/cli/program.ts imports the commands of a plugin', () => {
  const isInside = ({ from, to }: Arrow) => isCommand(from) && moduleOf(from) === moduleOf(to)
  const isForeign = (arrow: Arrow) => arrow.from !== 'plugins/cli/program.ts' && !isInside(arrow)
  expect(breaches((arrow) => isCommand(arrow.to) && isForeign(arrow))).toEqual([])
})

test('wasm-sdk, which module authors install, imports nothing of the gateway', () => {
  const sdk = arrows.filter(({ from }) => from.startsWith('wasm-sdk/') && !isTest(from))
  expect(breaches(({ to }) => /^(kernel|plugins|#)/.test(to), sdk)).toEqual([])
})

test('the module rewriter is independent of the rest of plugins/wasm', () => {
  const rewriter = arrows.filter(({ from }) => from.startsWith('plugins/wasm/rewrite/') && !isTest(from))
  const isOwn = (to: string) => to.startsWith('plugins/wasm/rewrite/')
  expect(
    breaches(({ to }) => !isOwn(to) && !to.startsWith('node:') && to !== 'fast-check', rewriter),
  ).toEqual([])
})

test('kernel files import neither #kernel nor #shared', () => {
  expect(
    breaches(({ from, to }) => from.startsWith('kernel/') && to.startsWith('#') && !isTest(from)),
  ).toEqual([])
})

test('plugins/shared is imported as #shared and imports only #kernel', () => {
  const isShared = (file: string) => file.startsWith('plugins/shared/')
  const isByPath = (arrow: Arrow) => isShared(arrow.to) && !isShared(arrow.from) && !isPoolThreadFile(arrow)
  expect(breaches(isByPath)).toEqual([])
  expect(breaches(({ from, to }) => isShared(from) && to === '#shared')).toEqual([])
})

test('each package has one owner', () => {
  const isStranger = ({ from, to }: Arrow) => {
    const owners = ownersOf(to)
    const isOwner = (owner: string) => from === owner || from.startsWith(`${owner}/`)
    return owners !== null && !owners.some(isOwner) && !isOwnTest(from, owners)
  }
  expect(breaches(isStranger)).toEqual([])
})

/** Kernel and plugin tests may use the package directly, such as for a stub server. */
function isOwnTest(from: string, owners: readonly string[]): boolean {
  return isTest(from) && owners.some((owner) => owner.split('/')[0] === from.split('/')[0])
}

/** Row of a scoped package, also for its files. */
function ownersOf(to: string): readonly string[] | null {
  const name = to in OWNERS || !to.startsWith('@') ? to : to.split('/').slice(0, 2).join('/')
  return OWNERS[name] ?? null
}

test('only the kernel imports TypeBox; plugins get it from #kernel', () => {
  expect(breaches(({ from, to }) => to === 'typebox' && !from.startsWith('kernel/'))).toEqual([])
})

test('every imported package has an owner', () => {
  const known = new Set(['typebox', 'vitest', 'vitest/config', 'fast-check', '#kernel', '#shared'])
  const isKnown = (to: string) => known.has(to) || ownersOf(to) !== null
  expect(breaches(({ to }) => isPackage(to) && !to.startsWith('node:') && !isKnown(to))).toEqual([])
})

test('nothing imports test/, except benchmarks, which may use test/support', () => {
  const mayImport = ({ from, to }: Arrow) =>
    from.startsWith('test/') || isTest(from) || (from.startsWith('bench/') && to.startsWith('test/support/'))
  expect(breaches((arrow) => arrow.to.startsWith('test/') && !mayImport(arrow))).toEqual([])
})

test('examples, and scenarios of the benchmarks, use only the built product', () => {
  const outside = arrows.filter(({ from }) => /^(bench\/scenarios|examples)\//.test(from))
  expect(breaches(({ to }) => /^(kernel|plugins)\//.test(to), outside)).toEqual([])
})

test('the build has every module that a thread or process runs by its file', () => {
  const sources = globSync('{kernel,plugins}/**/*.ts').filter((file) => !isTest(file))
  const run = sources.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/\bmoduleFile\('([^']+)'\)/g)].map(([, path]) => `'${path}.ts'`),
  )
  expect(run.length).toBeGreaterThan(4)
  const build = readFileSync('plugins/build.ts', 'utf8')
  expect(run.filter((entry) => !build.includes(entry))).toEqual([])
})
