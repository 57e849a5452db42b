/** Errors of the mesh. */
import {
  adminErrorFormat,
  defineErrors,
  type ErrorFormat,
  type GatewayError,
  type RequestFacts,
  Type,
} from '#kernel'

export const meshErrors = defineErrors('mesh', {
  mesh_unavailable: {
    kind: 'unavailable',
    source: 'gateway',
    text: (problem: string) => `the mesh cannot be changed now: ${problem}; retry later`,
  },
  mesh_diverged: {
    kind: 'unavailable',
    source: 'gateway',
    text: () =>
      'the mesh engine has lost data, so the mesh cannot be changed; run `weir mesh restore` on the gateway whose records are right',
  },
  mesh_name_taken: {
    kind: 'internal',
    source: 'gateway',
    text: (name: string, mesh: string) =>
      `another gateway of the mesh ${mesh} is named ${name}: set plugins.mesh.name to a name of its own`,
  },
  mesh_engine_unreachable: {
    kind: 'internal',
    source: 'gateway',
    text: (kind: string, problem: string) =>
      `cannot use the mesh engine ${kind} of plugins.mesh-${kind}: ${problem}`,
  },
  mesh_secret_missing: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'plugins.mesh.secret must be set, since the keys of workers are stored in the mesh engine',
  },
  mesh_secret_mismatch: {
    kind: 'internal',
    source: 'gateway',
    text: () =>
      'a record of the mesh was sealed with another secret: plugins.mesh.secret must be the same everywhere',
  },
  mesh_other_secret: {
    kind: 'internal',
    source: 'gateway',
    text: (name: string) =>
      `plugins.mesh.secret is not that of the gateway ${name}: it must be the same on every gateway of the mesh`,
  },
  mesh_other_protocol: {
    kind: 'internal',
    source: 'gateway',
    text: (name: string, software: string, theirs: string, ours: string) =>
      `this release shares no record format with the gateway ${name} (release ${software}): it reads ${theirs}, this one ${ours}; upgrade by a release between the two`,
  },
  mesh_record_too_large: {
    kind: 'too_large',
    source: 'client',
    text: (bytes: number, limit: number) => `the record has ${bytes} bytes; the mesh takes at most ${limit}`,
  },
  mesh_full: {
    kind: 'insufficient_storage',
    source: 'client',
    text: (kind: string, limit: string) =>
      `the mesh takes at most ${limit} of the kind ${kind}; remove some, or make them smaller`,
  },
  mesh_blob_damaged: {
    kind: 'internal',
    source: 'gateway',
    text: (sha256: string) => `the bytes of ${sha256} in the mesh are damaged; upload them again`,
  },
  unknown_worker: {
    kind: 'not_found',
    source: 'client',
    text: (id: string) => `no worker has id ${id}`,
  },
  policy_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (model: string) => `no worker serves the model ${model}, so it has no policy`,
  },
  unknown_config_key: {
    kind: 'not_found',
    source: 'client',
    text: (key: string) => `the mesh has no value under ${key}`,
  },
  reserved_config_key: {
    kind: 'bad_request',
    source: 'client',
    text: (key: string) => `the key ${key} is reserved; set the limit with POST /ha/rate-limit`,
  },
  invalid_hex: {
    kind: 'bad_request',
    source: 'client',
    text: (problem: string) => `value ${problem}`,
  },
  rate_limit_not_enforced: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'this gateway enforces no global rate limit, since plugins.limits is false',
  },
  rate_limit_unset: {
    kind: 'not_found',
    source: 'client',
    text: () => 'no global rate limit was set; set one with POST /ha/rate-limit',
  },
})

interface AdminError {
  readonly error: { readonly message: string; readonly type: string }
}

/** Errors of the /ha routes: message and type, nothing else. */
export const meshErrorFormat: ErrorFormat = Object.freeze({
  ...adminErrorFormat,
  name: 'MeshError',
  schema: Type.Object({ error: Type.Object({ message: Type.String(), type: Type.String() }) }),
  body: (failure: GatewayError, request: RequestFacts) => {
    const { error } = adminErrorFormat.body(failure, request) as AdminError
    return { error: { message: error.message, type: error.type } }
  },
})
