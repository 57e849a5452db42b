/** Parses the tool list of a server. Invalid parts are dropped or replaced, so that one invalid tool does not affect others. */
import { isObject, type ListedTool } from '#kernel'

const MAX_NAME = 256
const MAX_DESCRIPTION = 8_192
const MAX_SCHEMA_BYTES = 65_536
const MAX_ANNOTATION_BYTES = 4_096
const ANY_OBJECT = Object.freeze({ type: 'object', properties: {} })

/** Tools of one page; invalid entries are dropped. */
export function readTools(page: unknown): ListedTool[] {
  const { tools } = page as { tools?: unknown }
  return Array.isArray(tools) ? tools.flatMap(readTool) : []
}

/** Cursor of the next page; null at the end. */
export function readCursor(page: unknown): string | null {
  const { nextCursor } = page as { nextCursor?: unknown }
  return typeof nextCursor === 'string' && nextCursor.length <= 4_096 ? nextCursor : null
}

/** Whether the server declares the tool as read-only; not verified. */
export function isReadOnly(tool: ListedTool): boolean {
  return tool.annotations?.readOnlyHint === true
}

function readTool(entry: unknown): ListedTool[] {
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

/** Replaces a missing or invalid schema by one without properties. Some services require the member `properties`. */
function readSchema(schema: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(schema) || schema.type !== 'object') return ANY_OBJECT
  if (schema.properties !== undefined && !isObject(schema.properties)) return ANY_OBJECT
  if (JSON.stringify(schema).length > MAX_SCHEMA_BYTES) return ANY_OBJECT
  return schema.properties === undefined ? { ...schema, properties: {} } : schema
}
