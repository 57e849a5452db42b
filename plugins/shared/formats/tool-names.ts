/** Names of functions within the limits of services: longer ones are cut and get a digest of the whole. */
import { createHash } from 'node:crypto'

/** Longest name that every service accepts. */
export const MAX_TOOL_NAME = 64
const DIGEST_CHARACTERS = 8

/** The same for the same text, so that no state is needed to find it again. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text
  return withDigest(text, text, most)
}

/** @param whole text that the digest is of */
export function withDigest(text: string, whole: string, most: number): string {
  const digest = createHash('sha256').update(whole).digest('hex').slice(0, DIGEST_CHARACTERS)
  return `${text.slice(0, most - DIGEST_CHARACTERS - 1)}_${digest}`
}

/** Name of a namespace's function for workers that know no namespaces. */
export function memberName(namespace: string, name: string): string {
  return shortened(`${namespace}__${name}`, MAX_TOOL_NAME)
}
