/** Restrictions of keys: which routes a caller may use, and which models. */
import type { Identity } from '../contracts/auth.ts'
import { defineErrors } from '../errors/define-errors.ts'

const MAX_SHOWN_MODEL = 200

const scopeErrors = defineErrors('access', {
  model_not_allowed: {
    kind: 'forbidden',
    source: 'client',
    text: (model: string) =>
      `this API key may not use the model '${model}'; GET /v1/models lists those it may use`,
  },
  model_required: {
    kind: 'forbidden',
    source: 'client',
    text: () => 'this API key may use some models only; name one of them in `model`',
  },
  route_not_allowed: {
    kind: 'forbidden',
    source: 'client',
    text: (endpoint: string) => `this API key may not use routes of the endpoint '${endpoint}'`,
  },
})

/** Whether the caller may use a model. @param model as the client sent it */
export function mayUseModel(identity: Identity | null, model: string): boolean {
  return identity?.models === undefined || identity.models.has(model)
}

/** @param model as the client sent it; null for any @throws model_not_allowed, model_required (403) */
export function checkModel(identity: Identity | null, model: string | null): void {
  if (identity?.models === undefined) return
  if (model === null) throw scopeErrors.model_required.with({ param: 'model' })
  if (!identity.models.has(model))
    throw scopeErrors.model_not_allowed.with({ param: 'model' }, model.slice(0, MAX_SHOWN_MODEL))
}

/** @param endpoint label of the route @throws route_not_allowed (403) */
export function checkEndpoint(identity: Identity | null, endpoint = 'other'): void {
  if (identity?.routes === undefined || identity.routes.has(endpoint)) return
  throw scopeErrors.route_not_allowed(endpoint)
}
