/** The wasm section of the configuration file: which modules, from where, and what each may cost. */
import { isAbsolute } from 'node:path'
import { type SettingProblem, type Static, Type } from '#kernel'
import { networkProblems } from '#shared'
import { readOrigin } from './fetch/origin-pattern.ts'
import { ConfiguredModuleSchema } from './wire.ts'

const count = (value: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ minimum, maximum, default: value, description })

export const wasmConfig = Type.Object(
  {
    roots: Type.Array(Type.String({ minLength: 1 }), {
      default: [],
      description:
        'Folders that modules may be loaded from, absolute, symbolic links resolved. Empty: any folder but the system folders that are always refused.',
    }),
    modules: Type.Array(ConfiguredModuleSchema, {
      default: [],
      description:
        'Modules to load at start, as POST /wasm takes them, before those registered through the API. One that cannot be loaded stops the start.',
    }),
    savedModules: Type.Union([Type.Literal('load'), Type.Literal('forget')], {
      default: 'load',
      description:
        'Modules registered through the API are kept by the storage plugin where that is enabled: path and hash, not the bytes. forget drops them at start. A saved module whose file is gone or changed is left out with an error in the log; one that must not fail (on_failure closed) stops the start.',
    }),
    allowRecording: Type.Boolean({
      default: false,
      description:
        'Administrators may record what modules are shown of live requests, as cases: without credentials, with bodies only where they are asked for.',
    }),
    maxModules: count(64, 1, 1_024, 'Most modules at one time.'),
    maxFileBytes: count(16_777_216, 8, 268_435_456, 'Largest module file, bytes.'),
    allowWasi: Type.Boolean({
      default: false,
      description:
        'Modules may ask for WASI preview 1 (wasi: true). They get a clock and random numbers, no files, no environment, no sockets.',
    }),
    timeoutMs: count(
      1_000,
      1,
      300_000,
      'Longest call of a guest that sets no limit of its own, milliseconds; waiting for a thread counts.',
    ),
    poolThreads: count(2, 1, 64, 'Threads that run guests, per data thread. Started with the first module.'),
    queueLimit: count(
      256,
      0,
      100_000,
      'Calls that may wait for a thread, per data thread; more follow on_failure without a call.',
    ),
    memoryPages: count(1_024, 1, 65_536, 'Most memory of one guest, in pages of 64 KiB. 1024 is 64 MiB.'),
    tablePlaces: count(65_536, 1, 10_000_000, 'Most places of all tables of one guest.'),
    stackKiB: count(
      1_024,
      16,
      16_384,
      'Most stack of one call of a guest, KiB, estimated from the local variables of functions that have not returned.',
    ),
    fuel: count(
      50_000_000,
      1_000,
      1_000_000_000_000,
      'Units that one call may burn: about an instruction each, some thousand a microsecond. The same input always burns the same. Code that runs when a module is instantiated has ten times as much.',
    ),
    fuelPerByte: count(4_000, 0, 1_000_000, 'Further units for each byte of the input.'),
    placement: Type.Union([Type.Literal('pool'), Type.Literal('inline'), Type.Literal('auto')], {
      default: 'pool',
      description:
        'Where modules run that do not say it themselves. pool: on threads of their own. inline: on the thread that serves the request, without a hop and within inline.fuel. auto: inline as long as their calls burn little, in the pool otherwise.',
    }),
    inline: Type.Object(
      {
        fuel: count(
          400_000,
          1_000,
          100_000_000,
          'Units of one call on the serving thread: about 50 microseconds. It holds up everybody on that thread.',
        ),
        maxBodyBytes: count(16_384, 0, 10_485_760, 'Larger bodies and stream events go to the pool, bytes.'),
      },
      { default: {}, additionalProperties: false },
    ),
    fetch: Type.Object(
      {
        origins: Type.Array(Type.String({ minLength: 1, maxLength: 512 }), {
          default: [],
          maxItems: 1_024,
          description:
            'Origins that modules may fetch from, such as https://api.example.com, https://*.example.com or http://10.0.0.7:8080. A module has to be registered for its own in allowed_hosts, and these have to cover them. Empty: no outgoing HTTP.',
        }),
        privateNetworks: Type.Array(Type.String(), {
          default: [],
          maxItems: 256,
          description:
            'Networks such as 10.0.0.0/8 that names of these origins may lead into. Loopback, private and reserved addresses are refused otherwise, unless an origin is that very address.',
        }),
        methods: Type.Array(Type.String({ pattern: '^[A-Z]+$', maxLength: 16 }), {
          default: ['GET', 'HEAD', 'POST'],
          description: 'Methods that modules may use.',
        }),
        timeoutMs: count(
          2_000,
          1,
          25_000,
          'All fetches of a module in one phase of a request, milliseconds, connecting included. No thread waits meanwhile.',
        ),
        maxPerCall: count(
          4,
          1,
          64,
          'Fetches of a module in one phase of a request; one more is a failed call.',
        ),
        maxOpen: count(32, 1, 1_024, 'Fetches of one module at one time; more are told busy.'),
        maxRequestBytes: count(65_536, 0, 10_485_760, 'Largest body that a module may send.'),
        maxResponseBytes: count(262_144, 0, 10_485_760, 'Largest body that it may be sent.'),
      },
      { default: {}, additionalProperties: false },
    ),
    pick: Type.Object(
      {
        headers: Type.Array(Type.String({ pattern: '^[a-z0-9-]+$', maxLength: 128 }), {
          default: [],
          maxItems: 64,
          description:
            'Request headers that routing modules (OnPick) may read, in lower case. A model is routed by them where its policy is wasm.',
        }),
        readsLoads: Type.Boolean({
          default: false,
          description: 'Engines are asked for their load while the policy wasm is in use.',
        }),
        maxCandidates: count(
          32,
          1,
          1_024,
          'Workers that a routing module is shown at a time; of more, the next ones in turn.',
        ),
      },
      { default: {}, additionalProperties: false },
    ),
    skippedStreams: Type.Object(
      {
        header: Type.Boolean({
          default: false,
          description:
            'Streams that begin while a module for them is suspended have the header x-weir-skipped-modules: names, percent-encoded.',
        }),
        event: Type.Boolean({
          default: false,
          description:
            'A stream that goes on without a module has the event weir.module_skipped, once for each module, behind what the module has not seen. For clients that pass by events that they do not know.',
        }),
      },
      {
        default: {},
        additionalProperties: false,
        description:
          'How clients learn that events passed without a module that may fail; metrics and log tell it anyway.',
      },
    ),
    heapMiB: count(128, 16, 4_096, 'Most JavaScript heap of a guest thread, MiB.'),
    stackMiB: count(4, 1, 16, 'Stack of a guest thread, MiB.'),
    maxBodyBytes: count(
      10_485_760,
      1,
      104_857_600,
      'Largest body that is shown to a guest, bytes. Larger requests get 413 where a module needs the body; larger answers pass by those modules.',
    ),
    reuseCalls: count(1_000, 1, 5_000, 'Calls after which a warm instance is replaced.'),
    stateBytes: count(
      4_194_304,
      65_536,
      1_073_741_824,
      'Memory for what all modules keep through kv_set and kv_incr, bytes. When it is full, the oldest entries go.',
    ),
    breaker: Type.Object(
      {
        failures: count(5, 1, 1_000_000, 'Failed calls in a row that suspend a module.'),
        coolOffMs: count(30_000, 1, 86_400_000, 'How long it is suspended, milliseconds.'),
      },
      { default: {}, additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

export type WasmConfig = Static<typeof wasmConfig>

/** What a schema cannot say. */
export function* wasmProblems({ roots, fetch }: WasmConfig): Generator<SettingProblem> {
  for (const [index, root] of roots.entries())
    if (!isAbsolute(root)) yield { path: ['roots', String(index)], text: 'must be an absolute path' }
  for (const [index, origin] of fetch.origins.entries())
    if (readOrigin(origin) === null) {
      const path = ['fetch', 'origins', String(index)]
      yield { path, text: `is no origin such as https://api.example.com, got ${JSON.stringify(origin)}` }
    }
  yield* networkProblems(['fetch', 'privateNetworks'], fetch.privateNetworks)
}
