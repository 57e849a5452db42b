/** Building blocks of the request schemas: null counts as absent, and errors name the field that is wrong. */
import { type Static, type TSchema, Type } from '#kernel'

/** An optional field in which null means absent. */
export function optional<S extends TSchema>(schema: S, description?: string) {
  const options = description === undefined ? {} : { description }
  return Type.Optional(Type.Union([schema, Type.Null()], options))
}

/** 0 to 4294967295. */
export const U32 = (minimum = 0) => Type.Integer({ minimum, maximum: 4_294_967_295 })

export const Range = (minimum: number, maximum: number) => Type.Number({ minimum, maximum })

/** Above 0, at most 1. */
export const Probability = Type.Number({ exclusiveMinimum: 0, maximum: 1 })

/** -1 switches it off; 0 is refused. */
export const TopK = Type.Unsafe<number>({ type: 'integer', if: { const: -1 }, else: { minimum: 1 } })

/**
 * A string or a list of items. Told apart before either is checked: a plain union would blame a bad list for not
 * being a string.
 */
export function stringOrList<T>(list: {
  readonly items?: TSchema
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly allowsNull?: boolean
}) {
  const { minLength, allowsNull = false, ...rest } = list
  const text = { type: allowsNull ? ['string', 'null'] : 'string' }
  return Type.Unsafe<string | T[] | null>({
    if: { type: 'array' },
    // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
    then: { type: 'array', ...rest },
    else: minLength === undefined ? text : { ...text, minLength },
  })
}

/** A string or up to four, none empty; null means absent. */
export const Stop = Type.Optional(
  stringOrList<string>({
    items: Type.String({ minLength: 1 }),
    maxItems: 4,
    minLength: 1,
    allowsNull: true,
  }),
)

/**
 * An object whose one field decides what else it must hold, such as messages by `role`. Only the branch of the
 * value that is there is checked, so that the error is about the right one.
 */
export function choiceBy<Branches extends Record<string, TSchema>>(key: string, branches: Branches) {
  const entries = Object.entries(branches)
  return Type.Unsafe<{ [Name in keyof Branches]: Static<Branches[Name]> }[keyof Branches]>({
    type: 'object',
    required: [key],
    properties: { [key]: { type: 'string', enum: entries.map(([name]) => name) } },
    allOf: entries.map(([name, branch]) => ({
      if: { properties: { [key]: { const: name } } },
      // biome-ignore lint/suspicious/noThenProperty: a JSON Schema keyword
      then: branch,
    })),
  })
}
