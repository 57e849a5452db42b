/** Errors of the /ha routes: message and type, nothing else. */
import {
  adminErrorFormat,
  defineErrors,
  type ErrorFormat,
  type GatewayError,
  type RequestFacts,
  Type,
} from '#kernel'

interface AdminError {
  readonly error: { readonly message: string; readonly type: string }
}

export const meshErrorFormat: ErrorFormat = Object.freeze({
  ...adminErrorFormat,
  name: 'MeshError',
  schema: Type.Object({ error: Type.Object({ message: Type.String(), type: Type.String() }) }),
  body: (failure: GatewayError, request: RequestFacts) => {
    const { error } = adminErrorFormat.body(failure, request) as AdminError
    return { error: { message: error.message, type: error.type } }
  },
})

export const routeErrors = defineErrors('mesh', {
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
