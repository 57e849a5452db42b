/** Restrictions of keys: which routes a caller may use, and which models. */
import type { Identity } from '../contracts/auth.ts'
import { defineErrors } from '../errors/define-errors.ts'
import { eachMember } from '../wire/top-level-members.ts'

const MAX_SHOWN_MODEL = 200
/** Members by which engines and vendors serve something else than `model`: adapters, fallbacks, lists of models. */
const MODEL_CHANGE = /^(?:lora|adapter|fallback)|^models$/i
const UNSET = /^(?:null|false|""|\[\s*\]|\{\s*\})$/

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
  model_change_not_allowed: {
    kind: 'forbidden',
    source: 'client',
    text: (member: string) =>
      `this API key may use some models only, so '${member}', which changes the model, is not allowed`,
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

/** @param body JSON of a request @throws model_change_not_allowed (403) */
export function checkModelChanges(identity: Identity | null, body: Buffer): void {
  if (identity?.models === undefined) return
  for (const { name, valueStart: start, valueEnd: end } of eachMember(body)) {
    if (!MODEL_CHANGE.test(name) || UNSET.test(body.toString('latin1', start, end))) continue
    const member = name.slice(0, MAX_SHOWN_MODEL)
    throw scopeErrors.model_change_not_allowed.with({ param: member }, member)
  }
}

/** @param endpoint label of the route @throws route_not_allowed (403) */
export function checkEndpoint(identity: Identity | null, endpoint = 'other'): void {
  if (identity?.routes === undefined || identity.routes.has(endpoint)) return
  throw scopeErrors.route_not_allowed(endpoint)
}
