/** Parses the tool list of a server. A tool that cannot be used gets a reason and does not affect others. */
import { isObject, type ListedTool } from '#kernel'
import { readSchema } from '../tools/tool-schema.ts'

const MAX_NAME = 256
const MAX_DESCRIPTION = 8_192
const MAX_ANNOTATION_BYTES = 4_096
const MAX_UNUSABLE = 100

/** A tool of a server that the gateway does not offer. */
export interface UnusableTool {
  readonly name: string
  readonly reason: string
}

interface ListLimits {
  readonly maxTools: number
  readonly maxMessageBytes: number
}

/** Collects the tools of all pages within the limits. */
export class CollectedTools {
  readonly #limits: ListLimits
  readonly #check: (tool: ListedTool) => string | null
  readonly #usable = new Map<string, ListedTool>()
  readonly #unusable: UnusableTool[] = []
  #bytes = 0

  /** @param check returns why a tool cannot be used; null if it can */
  constructor(limits: ListLimits, check: (tool: ListedTool) => string | null) {
    this.#limits = limits
    this.#check = check
  }

  /** In the server's order, each name once. */
  get tools(): readonly ListedTool[] {
    return [...this.#usable.values()]
  }

  /** The first ones. */
  get unusable(): readonly UnusableTool[] {
    return this.#unusable
  }

  get isFull(): boolean {
    return this.#usable.size >= this.#limits.maxTools || this.#bytes > this.#limits.maxMessageBytes
  }

  add(page: unknown): void {
    const { tools } = page as { tools?: unknown }
    for (const entry of Array.isArray(tools) ? tools : []) {
      const tool = readTool(entry)
      const reason = 'reason' in tool ? tool.reason : this.#take(tool)
      if (reason !== null && this.#unusable.length < MAX_UNUSABLE)
        this.#unusable.push({ name: tool.name, reason })
    }
  }

  /** @returns why it is not taken; null if it is */
  #take(tool: ListedTool): string | null {
    const { maxTools, maxMessageBytes } = this.#limits
    if (this.#usable.has(tool.name)) return 'an earlier tool has this name'
    if (this.#usable.size >= maxTools)
      return `the server has more tools than plugins.mcp.limits.maxTools (${maxTools})`
    const problem = this.#check(tool)
    if (problem !== null) return problem
    this.#bytes += JSON.stringify(tool).length
    if (this.#bytes > maxMessageBytes)
      return `the list is longer than plugins.mcp.limits.maxMessageBytes (${maxMessageBytes})`
    this.#usable.set(tool.name, tool)
    return null
  }
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

function readTool(entry: unknown): ListedTool | UnusableTool {
  if (!isObject(entry)) return { name: 'unknown', reason: 'the tool is not an object' }
  const { name, description, inputSchema, annotations } = entry
  if (typeof name !== 'string' || name === '') return { name: 'unknown', reason: 'the tool has no name' }
  if (name.length > MAX_NAME)
    return { name: `${name.slice(0, MAX_NAME)}…`, reason: `the name is longer than ${MAX_NAME} characters` }
  const schema = readSchema(inputSchema)
  if (typeof schema === 'string') return { name, reason: schema }
  return {
    name,
    description: typeof description === 'string' ? description.slice(0, MAX_DESCRIPTION) : null,
    inputSchema: schema,
    annotations:
      isObject(annotations) && JSON.stringify(annotations).length <= MAX_ANNOTATION_BYTES
        ? annotations
        : null,
  }
}
