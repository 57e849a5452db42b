/** Replaces each `{ "$env": "NAME" }` by the value of the variable, and each `{ "$file": "PATH" }` by the content of the file. */

import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { messageOf } from '../../../kernel/errors/message-of.ts'
import { isObject } from '../../../kernel/wire/is-object.ts'
import type { Finding } from './check-section.ts'
import { branches, nodeAt, type SchemaNode } from './schema-node.ts'
import type { Environment } from './settings.ts'

interface ResolvedReferences {
  readonly value: unknown
  /** Paths with values from the environment or a file, which are shown as `***`. */
  readonly secretPaths: readonly (readonly string[])[]
  readonly findings: readonly Finding[]
}

/** Syntax of references in other programs. */
const SHELL_STYLE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/

/**
 * @param schema decides whether the text becomes a number or a boolean; null leaves text
 * @param base path of the value in the file
 */
export function resolveReferences(
  value: unknown,
  env: Environment,
  schema: SchemaNode | null,
  base: readonly string[],
): ResolvedReferences {
  const secretPaths: (readonly string[])[] = []
  const findings: Finding[] = []
  const visit = (current: unknown, path: readonly string[]): unknown => {
    if (Array.isArray(current)) return current.map((item, index) => visit(item, [...path, String(index)]))
    if (typeof current === 'string') rejectShellStyle(current, path)
    if (!isObject(current)) return current
    if (Object.hasOwn(current, '$env') || Object.hasOwn(current, '$file')) return replace(current, path)
    return Object.fromEntries(
      Object.entries(current).map(([key, member]) => [key, visit(member, [...path, key])]),
    )
  }
  const rejectShellStyle = (text: string, path: readonly string[]): void => {
    const name = SHELL_STYLE.exec(text)?.[1]
    // Unreplaced, it could become a key that is easy to guess.
    if (name !== undefined) {
      findings.push({
        path: [...base, ...path],
        text: `is not replaced here; write { $env: ${name} }`,
        got: text,
      })
    }
  }
  const replace = (reference: Record<string, unknown>, path: readonly string[]): unknown => {
    const found = lookUp(reference, env)
    if (typeof found !== 'string') {
      findings.push({ path: [...base, ...path], text: found.problem })
      return undefined
    }
    secretPaths.push([...base, ...path])
    return fromText(found, schema === null ? null : nodeAt(schema, path))
  }
  return { value: visit(value, []), secretPaths, findings }
}

function lookUp(reference: Record<string, unknown>, env: Environment): string | { readonly problem: string } {
  const kind = Object.hasOwn(reference, '$env') ? '$env' : '$file'
  const name = reference[kind]
  const what = kind === '$env' ? 'an environment variable' : 'a file'
  if (typeof name !== 'string' || name === '') return { problem: `must name ${what} in ${kind}` }
  if (Object.keys(reference).length > 1) return { problem: `must have no other key beside ${kind}` }
  if (kind === '$env')
    return env[name] ?? { problem: `refers to the environment variable ${name}, which is not set` }
  try {
    return readSecretFile(name)
  } catch (error) {
    return { problem: `refers to the file ${name}, which cannot be used: ${messageOf(error)}` }
  }
}

/** Converts the text for fields that accept no text. */
function fromText(text: string, node: SchemaNode | null): string | number | boolean {
  const types = node === null ? [] : branches(node).map((branch) => branch.type)
  if (types.includes('string') || types.length === 0) return text
  const isNumeric = types.includes('integer') || types.includes('number')
  if (isNumeric && text.trim() !== '' && Number.isFinite(Number(text))) return Number(text)
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  return text
}

/** Secrets are short; a wrong path, such as that of a log, is noticed before it is read. */
const MAX_BYTES = 65_536

/**
 * Reads the file of a `{ "$file": "PATH" }` reference, such as a mounted secret.
 *
 * @param path relative to the working directory, like all paths of the configuration
 * @returns the text without one line break at its end, which editors and `echo` add
 * @throws Error with the reason, without content of the file
 */
export function readSecretFile(path: string): string {
  // Without NONBLOCK, opening a pipe would wait for its writer.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stats = fstatSync(file)
    if (!stats.isFile()) throw new Error('it is not a regular file')
    if (stats.size > MAX_BYTES)
      throw new Error(`it has ${stats.size} bytes, at most ${MAX_BYTES} are allowed`)
    const text = decode(readFileSync(file)).replace(/\r?\n$/, '')
    if (text === '') throw new Error('it is empty')
    return text
  } finally {
    closeSync(file)
  }
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Error('it is not UTF-8 text')
  }
}
