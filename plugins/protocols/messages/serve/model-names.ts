/** Model names as clients use them, mapped to the operator's models: in requests and in the model list. */
import { headerOf, type IncomingResponse, isObject, type RequestContext } from '#kernel'
import { MESSAGES_VERSION_HEADER as VERSION_HEADER, withMembers } from '#shared'
import { invalidField } from '../errors.ts'

export class ModelNames {
  readonly #exact: ReadonlyMap<string, string>
  /** Longest first. */
  readonly #prefixes: readonly (readonly [prefix: string, model: string])[]

  /** @param names the setting `models` */
  constructor(names: Readonly<Record<string, string>>) {
    const all = Object.entries(names)
    this.#exact = new Map(all.filter(([name]) => !name.endsWith('*')))
    this.#prefixes = all
      .filter(([name]) => name.endsWith('*'))
      .map(([name, model]) => [name.slice(0, -1), model] as const)
      .sort(([a], [b]) => b.length - a.length)
  }

  /** The operator's model, or the name itself if no mapping is configured. */
  resolve(name: string): string {
    return this.#exact.get(name) ?? this.#prefixes.find(([prefix]) => name.startsWith(prefix))?.[1] ?? name
  }

  /** Names that the model list can show, with the model of each. */
  get listed(): Iterable<readonly [name: string, model: string]> {
    return this.#exact
  }
}

/** The model of a request, known before its body is parsed. */
export interface MessageHead {
  /** As the client names it. */
  readonly named: string
  /** As the operator names it. */
  readonly model: string
}

const DATE = /^\d{4}-\d{2}-\d{2}$/

/**
 * Reads the version header and the model, and writes the operator's model into the body.
 *
 * @throws invalid_field (400) naming the header or `model`; json_parse_error (400)
 */
export function readHead(ctx: RequestContext, names: ModelNames): MessageHead {
  const version = ctx.header(VERSION_HEADER)
  if (version !== undefined && !DATE.test(version))
    throw invalidField(VERSION_HEADER, 'must be a date such as 2023-06-01')
  const { model: named } = ctx.peek()
  if (named === null) throw invalidField('model', 'is required')
  if (named === '') throw invalidField('model', 'must not be empty')
  const model = names.resolve(named)
  if (model !== named) {
    const changed = withMembers(ctx.bodyBytes, new Map([['model', JSON.stringify(model)]]))
    if (changed !== null) ctx.setBody(changed)
  }
  return { named, model }
}

export const MODELS_PATH = '/v1/models'
/** Status of the list when no worker lists a model; configured names are listed all the same. */
const NO_MODELS = 503

/** Adds to the model list what clients of the Messages format look for, and the configured names. */
export function toModelPage(names: ModelNames, ctx: RequestContext, response: IncomingResponse): void {
  const { status, body, headers } = response
  if (body === null || ctx.header(VERSION_HEADER) === undefined) return
  if (status !== 200 && status !== NO_MODELS) return
  if (headerOf(headers, 'content-type')?.includes('json') !== true) return
  const list: unknown = status === 200 ? JSON.parse(body.toString('utf8')) : { object: 'list', data: [] }
  const page = toPage(names, list)
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
