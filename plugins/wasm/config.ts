/** Schema of plugins.wasm: modules, their sources and their limits. */
import { isAbsolute } from 'node:path'
import { messageOf, type SettingProblem, type Static, Type } from '#kernel'
import { networkProblems } from '#shared'
import { covers, originOf, readOrigin } from './fetch/origin-pattern.ts'
import { matchProblems } from './hooks/active-modules.ts'
import { isRemote, originsOf } from './sources/module-reference.ts'
import { ConfiguredModuleSchema } from './wire.ts'

const count = (value: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ minimum, maximum, default: value, description })

export const wasmConfig = Type.Object(
  {
    roots: Type.Array(Type.String({ minLength: 1 }), {
      default: [],
      description:
        'Folders that contain the modules of requests to /wasm: absolute paths, symbolic links resolved. Empty, such requests are rejected. Modules of the configuration file may lie anywhere.',
    }),
    modules: Type.Array(ConfiguredModuleSchema, {
      default: [],
      description:
        'Modules to load at start, in the form of POST /wasm, before those registered through the API. The start fails if one cannot be loaded.',
    }),
    savedModules: Type.Enum(['load', 'forget'], {
      default: 'load',
      description:
        'Modules registered through the API are stored by the storage plugin if it is enabled: path and hash, with the bytes of those from a URL. forget removes them at start. A saved module whose file is missing or changed is not loaded and an error is logged; with on_failure closed the start fails. A mesh that shares modules stores them with their bytes instead, and forget has no effect.',
    }),
    allowUploads: Type.Boolean({
      default: false,
      description:
        'Allows administrators to register modules that they send to POST /wasm/files, as the console does, beside those of roots and sources.',
    }),
    allowRecording: Type.Boolean({
      default: false,
      description:
        'Allows administrators to record module inputs of live requests as test cases: without credentials, with bodies only on request.',
    }),
    maxModules: count(64, 1, 1_024, 'Maximum number of modules.'),
    maxFileBytes: count(16_777_216, 8, 268_435_456, 'Maximum size of a module file, bytes.'),
    allowWasi: Type.Boolean({
      default: false,
      description:
        'Allows modules that import WASI preview 1 (wasi: true). They get a clock and random numbers, but no files, environment or sockets.',
    }),
    timeoutMs: count(
      1_000,
      1,
      300_000,
      'Maximum time of a call, milliseconds, including the wait for a thread. A module can set its own.',
    ),
    poolThreads: count(2, 1, 64, 'Threads that run modules, per data thread. Started with the first module.'),
    queueLimit: count(
      256,
      0,
      100_000,
      'Maximum number of calls waiting for a thread, per data thread; further calls are skipped and on_failure applies.',
    ),
    memoryPages: count(
      1_024,
      1,
      65_536,
      'Maximum memory of one instance, in pages of 64 KiB. 1024 is 64 MiB.',
    ),
    tablePlaces: count(65_536, 1, 10_000_000, 'Maximum number of table entries of one instance.'),
    stackKiB: count(
      1_024,
      16,
      16_384,
      'Maximum stack of one call, KiB, estimated from the local variables of the active functions.',
    ),
    fuel: count(
      50_000_000,
      1_000,
      1_000_000_000_000,
      'Fuel of one call: about one unit per instruction, some thousand per microsecond. The same input always uses the same amount. The start of an instance has ten times as much.',
    ),
    fuelPerByte: count(4_000, 0, 1_000_000, 'Additional fuel for each byte of the input.'),
    placement: Type.Enum(['pool', 'inline', 'auto'], {
      default: 'pool',
      description:
        'Where modules run by default. pool: on separate threads. inline: on the data thread, without a thread hop and within inline.fuel. auto: inline while calls use little fuel, else in the pool.',
    }),
    inline: Type.Object(
      {
        fuel: count(
          400_000,
          1_000,
          100_000_000,
          'Fuel of one call on the data thread: about 50 microseconds, during which the thread serves no other request. A start there has four times as much.',
        ),
        maxBodyBytes: count(
          16_384,
          0,
          10_485_760,
          'Larger bodies and stream events are sent to the pool, bytes.',
        ),
      },
      { default: {}, additionalProperties: false },
    ),
    fetch: Type.Object(
      {
        origins: Type.Array(Type.String({ minLength: 1, maxLength: 512 }), {
          default: [],
          maxItems: 1_024,
          description:
            'Origins that modules may fetch from, such as https://api.example.com, https://*.example.com or http://10.0.0.7:8080. Each module lists its own in allowed_hosts, which must be covered by these. Empty disables outgoing HTTP.',
        }),
        privateNetworks: Type.Array(Type.String(), {
          default: [],
          maxItems: 256,
          description:
            'Networks such as 10.0.0.0/8 to which host names of these origins may resolve. Other loopback, private and reserved addresses are rejected, unless an origin is that exact address.',
        }),
        methods: Type.Array(Type.String({ pattern: '^[A-Z]+$', maxLength: 16 }), {
          default: ['GET', 'HEAD', 'POST'],
          description: 'Allowed methods.',
        }),
        timeoutMs: count(
          2_000,
          1,
          25_000,
          'Maximum total time of the fetches of a module in one phase of a request, or for one event or piece of text of a stream, milliseconds, including connecting. No thread is blocked.',
        ),
        maxPerCall: count(
          4,
          1,
          64,
          'Maximum number of fetches of a module in one phase of a request, or for one event or piece of text of a stream; a further one fails the call.',
        ),
        maxOpen: count(
          32,
          1,
          1_024,
          'Maximum number of concurrent fetches of one module; further ones get the error busy.',
        ),
        maxRequestBytes: count(65_536, 0, 10_485_760, 'Maximum request body of a fetch, bytes.'),
        maxResponseBytes: count(262_144, 0, 10_485_760, 'Maximum response body of a fetch, bytes.'),
      },
      { default: {}, additionalProperties: false },
    ),
    ask: Type.Object(
      {
        models: Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
          default: [],
          maxItems: 256,
          description:
            'Models that modules may ask; a trailing * matches any suffix. The tokens count for the request and its tenant. Empty disables questions.',
        }),
        maxTokens: count(1_024, 1, 1_000_000, 'Maximum number of output tokens of an answer.'),
        timeoutMs: count(
          10_000,
          1,
          300_000,
          'Maximum time of a question, milliseconds. fetch.maxPerCall, maxRequestBytes and maxResponseBytes apply too. No thread is blocked.',
        ),
      },
      { default: {}, additionalProperties: false },
    ),
    sources: Type.Object(
      {
        origins: Type.Array(Type.String({ minLength: 1, maxLength: 512 }), {
          default: [],
          maxItems: 1_024,
          description:
            'Origins that modules may be loaded from if file_path is a URL, such as https://ghcr.io or https://*.example.com; those of redirects and of the token service of a registry, too. A registry listed with http:// is asked without TLS. Empty, only files are loaded.',
        }),
        privateNetworks: Type.Array(Type.String(), {
          default: [],
          maxItems: 256,
          description: 'As fetch.privateNetworks, for these origins.',
        }),
        credentials: Type.Array(
          Type.Object(
            {
              origin: Type.String({
                minLength: 1,
                maxLength: 512,
                description: 'Origin of a registry or server, such as https://ghcr.io.',
              }),
              username: Type.Optional(
                Type.String({
                  minLength: 1,
                  pattern: '^[^:]+$',
                  description: 'Default: the password is sent as a bearer token.',
                }),
              ),
              password: Type.String({
                minLength: 1,
                pattern: '^[ -~]+$',
                secret: true,
                description: 'Password or token.',
              }),
            },
            { additionalProperties: false },
          ),
          {
            default: [],
            maxItems: 256,
            description: 'Credentials by origin; the first that matches is used.',
          },
        ),
        timeoutMs: count(
          30_000,
          1,
          300_000,
          'Maximum time to load a module from a URL, milliseconds, with redirects and tokens.',
        ),
      },
      { default: {}, additionalProperties: false },
    ),
    pick: Type.Object(
      {
        headers: Type.Array(Type.String({ pattern: '^[a-z0-9-]+$', maxLength: 128 }), {
          default: [],
          maxItems: 64,
          description:
            'Request headers that OnPick modules may read, in lower case. They run for models whose policy is wasm.',
        }),
        readsLoads: Type.Boolean({
          default: false,
          description: 'Polls the load of engines while the policy wasm is in use.',
        }),
        maxCandidates: count(
          32,
          1,
          1_024,
          'Maximum number of workers passed to an OnPick module; a larger fleet is passed in turns.',
        ),
      },
      { default: {}, additionalProperties: false },
    ),
    skippedStreams: Type.Object(
      {
        header: Type.Boolean({
          default: false,
          description:
            'Adds the header x-weir-skipped-modules (names, percent-encoded) to streams that begin while one of their modules is suspended.',
        }),
        event: Type.Boolean({
          default: false,
          description:
            'Adds the event weir.module_skipped, once per module, to a stream that continues without a module. For clients that ignore unknown events.',
        }),
      },
      {
        default: {},
        additionalProperties: false,
        description:
          'Notify clients of stream events that were sent without a module. Metrics and log record them in any case.',
      },
    ),
    heapMiB: count(128, 16, 4_096, 'Maximum JavaScript heap of a guest thread, MiB.'),
    stackMiB: count(4, 1, 16, 'Stack of a guest thread, MiB.'),
    maxBodyBytes: count(
      10_485_760,
      1,
      104_857_600,
      'Maximum body passed to a module, bytes. Larger requests get 413 if a module needs the body; larger responses skip those modules.',
    ),
    reuseCalls: count(1_000, 1, 5_000, 'Calls after which a warm instance is replaced.'),
    stateBytes: count(
      4_194_304,
      65_536,
      1_073_741_824,
      'Memory for the values and counters of all modules with kv: memory (kv_set, kv_incr), bytes. When it is full, the oldest entries are evicted.',
    ),
    kv: Type.Object(
      {
        moduleBytes: count(
          1_048_576,
          65_536,
          67_108_864,
          'Memory for the values of one module with kv: store or mesh, bytes; a value uses at least 128. When it is full, new values are rejected.',
        ),
        tenantBytes: count(
          262_144,
          128,
          67_108_864,
          'Part of it that the values of one tenant may use, bytes. Values of calls without a tenant may use all of it.',
        ),
      },
      { default: {}, additionalProperties: false },
    ),
    breaker: Type.Object(
      {
        failures: count(5, 1, 1_000_000, 'Consecutive failed calls that suspend a module.'),
        coolOffMs: count(30_000, 1, 86_400_000, 'Time of the suspension, milliseconds.'),
      },
      { default: {}, additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

export type WasmConfig = Static<typeof wasmConfig>

/** What a schema cannot say. */
export function* wasmProblems({ roots, modules, fetch, sources }: WasmConfig): Generator<SettingProblem> {
  for (const [index, root] of roots.entries())
    if (!isAbsolute(root)) yield { path: ['roots', String(index)], text: 'must be an absolute path' }
  for (const [section, { origins, privateNetworks }] of Object.entries({ fetch, sources })) {
    for (const [index, origin] of origins.entries())
      yield* originProblems([section, 'origins', String(index)], origin)
    yield* networkProblems([section, 'privateNetworks'], privateNetworks)
  }
  for (const [index, { origin }] of sources.credentials.entries())
    yield* originProblems(['sources', 'credentials', String(index), 'origin'], origin)
  for (const [index, module] of modules.entries())
    for (const { member, text } of matchProblems(module))
      yield { path: ['modules', String(index), 'match', member], text }
  const patterns = sources.origins.map(readOrigin).filter((pattern) => pattern !== null)
  for (const [index, { file_path, sha256 }] of modules.entries()) {
    if (!isRemote(file_path)) continue
    const path = ['modules', String(index)]
    if (sha256 === undefined)
      yield {
        path: [...path, 'sha256'],
        text: 'must be the SHA-256 of the module, which file_path loads from a URL',
      }
    try {
      const origins = originsOf(file_path)
      if (!origins.some((url) => patterns.some((pattern) => covers(pattern, originOf(url)))))
        yield {
          path: [...path, 'file_path'],
          text: `must lie at an origin of plugins.wasm.sources.origins (got ${origins[0].origin})`,
        }
    } catch (error) {
      yield { path: [...path, 'file_path'], text: messageOf(error) }
    }
  }
}

function* originProblems(path: readonly string[], origin: string): Generator<SettingProblem> {
  if (readOrigin(origin) === null)
    yield { path, text: `must be an origin such as https://api.example.com (got ${JSON.stringify(origin)})` }
}
