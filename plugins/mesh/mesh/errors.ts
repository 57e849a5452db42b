/** Errors of the mesh. */
import { defineErrors } from '#kernel'

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
})
