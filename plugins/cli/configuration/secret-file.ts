/** Reads the file of a `{ "$file": "PATH" }` reference, such as a mounted secret. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'

/** Secrets are short; a wrong path, such as that of a log, is noticed before it is read. */
const MAX_BYTES = 65_536

/**
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
