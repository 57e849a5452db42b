/** The model list as clients of the Messages format read it. */
import { headerOf, type IncomingResponse, isObject, type RequestContext } from '#kernel'
import { MESSAGES_VERSION_HEADER as VERSION_HEADER } from '#shared'

export const MODELS_PATH = '/v1/models'

/** Adds to the model list what clients of the Messages format look for. */
export function toModelPage(ctx: RequestContext, response: IncomingResponse): void {
  const { status, body, headers } = response
  if (body === null || status !== 200 || ctx.header(VERSION_HEADER) === undefined) return
  if (headerOf(headers, 'content-type')?.includes('json') !== true) return
  const page = toPage(JSON.parse(body.toString('utf8')))
  if (page !== null) response.body = Buffer.from(JSON.stringify(page))
}

function toPage(list: unknown) {
  if (!isObject(list) || !Array.isArray(list.data)) return null
  const models = list.data.filter(isObject)
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
