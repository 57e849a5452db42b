/** Reads what a server says about its tools; whatever does not fit is left out or replaced, so that one bad tool spoils none. */

/** A tool as its server declares it. */
export interface ServerTool {
  readonly name: string
  readonly description: string | null
  /** Always a schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** As the server gave them; null when it gave none. */
  readonly annotations: Readonly<Record<string, unknown>> | null
}

const MAX_NAME = 256
const MAX_DESCRIPTION = 8_192
const MAX_SCHEMA_BYTES = 65_536
const MAX_ANNOTATION_BYTES = 4_096
const ANY_OBJECT = Object.freeze({ type: 'object', properties: {} })

/** Tools of one page; entries that are no tools are left out. */
export function readTools(page: unknown): ServerTool[] {
  const { tools } = page as { tools?: unknown }
  return Array.isArray(tools) ? tools.flatMap(readTool) : []
}

/** Where the next page begins; null at the end. */
export function readCursor(page: unknown): string | null {
  const { nextCursor } = page as { nextCursor?: unknown }
  return typeof nextCursor === 'string' && nextCursor.length <= 4_096 ? nextCursor : null
}

/** True when the server says that the tool only reads. Nobody checks it. */
export function isReadOnly(tool: ServerTool): boolean {
  return tool.annotations?.readOnlyHint === true
}

function readTool(entry: unknown): ServerTool[] {
  if (!isObject(entry)) return []
  const { name, description, inputSchema, annotations } = entry
  if (typeof name !== 'string' || name === '' || name.length > MAX_NAME) return []
  return [
    {
      name,
      description: typeof description === 'string' ? description.slice(0, MAX_DESCRIPTION) : null,
      inputSchema: readSchema(inputSchema),
      annotations:
        isObject(annotations) && JSON.stringify(annotations).length <= MAX_ANNOTATION_BYTES
          ? annotations
          : null,
    },
  ]
}

/** A missing schema, or one that is not an object, becomes the empty one. */
function readSchema(schema: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(schema) || schema.type !== 'object') return ANY_OBJECT
  if (schema.properties !== undefined && !isObject(schema.properties)) return ANY_OBJECT
  return JSON.stringify(schema).length <= MAX_SCHEMA_BYTES ? schema : ANY_OBJECT
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
