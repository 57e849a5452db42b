/** Building blocks of the schemas of bodies. In requests null counts as absent. */
import { type Static, type TSchema, Type } from '#kernel'

/** An optional member in which null means absent. */
export function nullable<S extends TSchema>(schema: S, description?: string) {
  return Type.Optional(Type.Union([schema, Type.Null()], description === undefined ? {} : { description }))
}

/** Objects that are distinguished by one field, a literal in each member: only the schema that its value names is checked. */
export function unionBy<S extends TSchema[]>(propertyName: string, ...members: [...S]) {
  return Type.Unsafe<{ [K in keyof S]: Static<S[K]> }[number]>({
    type: 'object',
    oneOf: members,
    discriminator: { propertyName },
  })
}

type Tagged = TSchema & { readonly properties: Readonly<Record<string, unknown>> }

/**
 * As `unionBy` for `type`, with any other type allowed: formats gain kinds that the gateway passes on unread. Values that
 * begin with an underscore are the gateway's own.
 */
export function openUnion<S extends Tagged[]>(...members: [...S]) {
  const known = members.map(({ properties }) => (properties.type as { const?: unknown }).const)
  return Type.Unsafe<{ [K in keyof S]: Static<S[K]> }[number]>({
    type: 'object',
    required: ['type'],
    properties: { type: { type: 'string', pattern: '^[^_]' } },
    if: { required: ['type'], properties: { type: { enum: known } } },
    // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
    then: unionBy('type', ...members),
  })
}

interface ListOptions<S extends TSchema> {
  readonly items: S
  readonly minItems?: number
  readonly maxItems?: number
  /** Of the string. */
  readonly minLength?: number
}

/**
 * A string or a list of items. The branch is chosen before it is checked: a union would report a wrong list as "must be a
 * string".
 */
export function stringOrList<S extends TSchema>(options: ListOptions<S>) {
  return Type.Unsafe<string | Static<S>[]>(stringOrListSchema(options, ['string']))
}

/** As `stringOrList`, optional; null means absent. */
export function nullableStringOrList<S extends TSchema>(options: ListOptions<S>) {
  return Type.Optional(
    Type.Unsafe<string | Static<S>[] | null>(stringOrListSchema(options, ['string', 'null'])),
  )
}

function stringOrListSchema({ minLength, ...list }: ListOptions<TSchema>, types: string[]): TSchema {
  // Lists do not reach it; they are named for the text of the error.
  const type = [...types, 'array']
  return Type.Unsafe({
    if: { type: 'array' },
    // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
    then: { type: 'array', ...list },
    else: minLength === undefined ? { type } : { type, minLength },
  })
}

/** Path of a field with list indexes in brackets: `input[0].content`. @param field dotted path */
export function bracketPath(field: string): string {
  return field.replace(/\.(\d+)(?=\.|$)/g, '[$1]')
}

/** A body of a worker: members are known by name, and each value is checked where it is read. */
export type Unchecked<T> = { readonly [Member in keyof T]?: unknown }

/** Query of routes whose SDKs have beta types. */
export const BETA_QUERY = {
  beta: Type.Optional(
    Type.Boolean({
      description:
        'Sent by SDKs with each request of their beta types, whose members work with and without it. Workers of the format get it.',
    }),
  ),
}
