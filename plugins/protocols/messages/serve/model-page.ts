/** GET /v1/models for clients of the messages format: the same list with the members that they look for. */

import { headerOf, type IncomingResponse, type RequestContext } from '#kernel'
import { MESSAGES_VERSION_HEADER } from '#shared'
import { isObject } from './check-request.ts'
import type { ModelNames } from './model-names.ts'

export const MODELS_PATH = '/v1/models'
/** No model is registered but those of services, which are not everybody's to know; names of the configuration are. */
const NO_MODELS = 503

/** One list that both formats can read; names of the configuration stand beside the models. */
export function toModelPage(names: ModelNames, ctx: RequestContext, response: IncomingResponse): void {
  const { status, body, headers } = response
  if (body === null || ctx.header(MESSAGES_VERSION_HEADER) === undefined) return
  if (
    (status !== 200 && status !== NO_MODELS) ||
    headerOf(headers, 'content-type')?.includes('json') !== true
  )
    return
  const list: unknown = JSON.parse(body.toString('utf8'))
  const page = status === 200 ? toPage(names, list) : toPage(names, { object: 'list', data: [] })
  if (page === null || page.data.length === 0) return
  response.status = 200
  response.body = Buffer.from(JSON.stringify(page))
}

function toPage(names: ModelNames, list: unknown) {
  if (!isObject(list) || !Array.isArray(list.data)) return null
  const models = list.data.filter(isObject)
  const known = new Map(models.map((model) => [model.id, model]))
  for (const [name, model] of names.listed)
    if (!known.has(name)) models.push({ ...known.get(model), object: 'model', id: name })
  const data = models.map((model) => ({
    ...model,
    type: 'model',
    display_name: model.id,
    created_at: new Date(typeof model.created === 'number' ? model.created * 1_000 : 0).toISOString(),
  }))
  return {
    ...list,
    data,
    has_more: false,
    first_id: models.at(0)?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
  }
}
