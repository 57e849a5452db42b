/** Finds where a client's request has a text, for errors that name it. */

/** @returns such as `input[0].content[1].file_url`, for the first place; null for none */
export function pathOfText(value: unknown, text: string, path = ''): string | null {
  if (value === text) return path
  if (typeof value !== 'object' || value === null) return null
  for (const [name, member] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`
    const found = pathOfText(member, text, at)
    if (found !== null) return found
  }
  return null
}
