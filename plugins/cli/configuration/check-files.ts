/** Checks that the files which a configuration names can be read, by the keyword `reads` of the schemas. */
import { accessSync, constants } from 'node:fs'
import { isObject } from '../../../kernel/wire/is-object.ts'
import type { Finding } from './check-section.ts'
import { branches, childAt, itemsOf, type SchemaNode } from './schema-node.ts'

interface FileFinding extends Finding {
  /** True if the gateway does not start without the file. */
  readonly isFatal: boolean
}

/** @param section complete and valid */
export function* unreadableFiles(
  node: SchemaNode,
  section: unknown,
  path: readonly string[],
): Generator<FileFinding> {
  if (typeof section === 'string') {
    const reads = node.reads ?? branches(node).find((branch) => branch.reads !== undefined)?.reads
    const reason = reads === undefined ? null : unreadable(section)
    if (reason !== null)
      yield {
        path,
        text: `cannot be read (${reason})`,
        got: section,
        isFatal: reads === 'start',
      }
  } else if (Array.isArray(section)) {
    const items = itemsOf(node)
    if (items !== null)
      for (const [index, item] of section.entries())
        yield* unreadableFiles(items, item, [...path, String(index)])
  } else if (isObject(section)) {
    for (const [key, member] of Object.entries(section)) {
      const child = childAt(node, key)
      if (child !== null) yield* unreadableFiles(child, member, [...path, key])
    }
  }
}

/** @returns the error code, or null if the file can be read */
function unreadable(file: string): string | null {
  try {
    accessSync(file, constants.R_OK)
    return null
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown reason'
  }
}
