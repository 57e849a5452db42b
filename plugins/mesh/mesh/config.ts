/** Configuration section of the mesh plugin. */
import { type Static, Type } from '#kernel'

const shared = (description: string) => Type.Boolean({ default: true, description })

export const meshConfig = Type.Object(
  {
    name: Type.Union([Type.String({ pattern: '^[A-Za-z0-9._-]{1,128}$' }), Type.Null()], {
      default: null,
      description:
        'Name of this gateway: letters, digits, `.`, `_` and `-`. Each gateway of a mesh needs its own. Default: the host name.',
    }),
    mesh: Type.String({
      default: 'weir',
      pattern: '^[A-Za-z0-9._-]{1,64}$',
      description: 'Name of the mesh; gateways with the same name and engine belong together.',
    }),
    address: Type.Union([Type.String({ minLength: 1, maxLength: 256 }), Type.Null()], {
      default: null,
      description:
        'Where other gateways and operators reach the API, such as `10.0.0.1:30000`; shown in `/ha/status`. Default: host and port of the kernel, or the host name.',
    }),
    secret: Type.Union([Type.String({ minLength: 16 }), Type.Null()], {
      default: null,
      secret: true,
      description:
        'Encrypts the keys of workers in the engine, at least 16 characters; the same on every gateway. Usually a reference: `{ "$env": "WEIR_MESH_SECRET" }`. Required with an engine.',
    }),
    acknowledge: Type.Union(
      [
        Type.Literal('disk'),
        Type.Literal('memory'),
        Type.Object({ replicas: Type.Integer({ minimum: 1, maximum: 16 }) }, { additionalProperties: false }),
      ],
      {
        default: 'disk',
        description:
          'When a change is acknowledged: `disk`, once it is on the disk of the engine, which needs its append-only file; `memory`, once it is in its memory; `{ replicas: 1 }`, once so many replicas have it.',
      },
    ),
    requireAtStart: Type.Boolean({
      default: false,
      description:
        'true: without the engine, the gateway does not start. false: it starts with the records that it has stored last, in `plugins.storage.dir`, and joins when the engine answers.',
    }),
    whenAlone: Type.Union([Type.Literal('share'), Type.Literal('full')], {
      default: 'share',
      description:
        'Shared limits of this gateway while the engine is unreachable: its share, the limit divided by the last known gateways, or the full limit.',
    }),
    shares: Type.Object(
      {
        workers: shared('Workers that were added through the API, and their load.'),
        limits: shared('The global limit, tenant limits and budgets.'),
        prefixes: shared('Which worker has seen which prompts, for cache_aware.'),
        sessions: shared('Which worker serves which session.'),
        wasm: shared(
          'WASM modules that were added through the API, with their bytes, and values of modules with kv: mesh.',
        ),
        tokenizers: shared('Tokenizers that were added through the API.'),
        keys: shared(
          'Keys that were created through the API; with a shared store, only their changes are announced.',
        ),
      },
      {
        default: {},
        additionalProperties: false,
        description: 'What gateways share; the same on every gateway.',
      },
    ),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type MeshConfig = Static<typeof meshConfig>
