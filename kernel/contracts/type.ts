/**
 * Makes JSON schemas. The names, the types and the results are TypeBox's, which itself would bring 373 modules and 3 MB
 * to each thread for the few makers that are used.
 */
import type * as typebox from 'typebox'

type Schema = Record<string, unknown>
type Makers = Pick<
  typeof typebox.Type,
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Intersect'
  | 'IsOptional'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Partial'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unknown'
  | 'Unsafe'
>

/** Marks a property that may be missing; no part of the schema as JSON. */
const OPTIONAL = '~optional'
const ANY_KEY = '^.*$'

const isOptional = (schema: object): boolean => OPTIONAL in schema
const ofType = (type: string) => (options?: Schema) => ({ type, ...options })

function optional(schema: Schema): Schema {
  return Object.defineProperty({ ...schema }, OPTIONAL, { value: true })
}

function object(properties: Record<string, Schema>, options?: Schema): Schema {
  const required = Object.keys(properties).filter((name) => !isOptional(properties[name]))
  return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
}

function partial({ properties }: Schema, options?: Schema): Schema {
  const all = Object.entries(properties as Record<string, Schema>)
  return object(Object.fromEntries(all.map(([name, schema]) => [name, optional(schema)])), options)
}

const makers = {
  Array: (items: Schema, options?: Schema) => ({ type: 'array', items, ...options }),
  Boolean: ofType('boolean'),
  Enum: (values: readonly unknown[], options?: Schema) => ({ enum: values, ...options }),
  Integer: ofType('integer'),
  Intersect: (allOf: Schema[], options?: Schema) => ({ allOf, ...options }),
  IsOptional: isOptional,
  Literal: (value: unknown, options?: Schema) => ({ type: typeof value, const: value, ...options }),
  Null: ofType('null'),
  Number: ofType('number'),
  Object: object,
  Optional: optional,
  Partial: partial,
  Record: ({ pattern }: Schema, values: Schema, options?: Schema) => ({
    type: 'object',
    patternProperties: { [typeof pattern === 'string' ? pattern : ANY_KEY]: values },
    ...options,
  }),
  String: ofType('string'),
  Union: (anyOf: Schema[], options?: Schema) => ({ anyOf, ...options }),
  Unknown: (options?: Schema) => ({ ...options }),
  Unsafe: (schema: Schema) => ({ ...schema }),
}

/** The makers of schemas; `Static` reads their types. */
export const Type = makers as unknown as Makers
