/** Prompts and inputs that clients send as token ids. */

const MAX_ID = 0xffff_ffff

/** What `toTokenIds` accepts, for error messages. */
export const TOKEN_ID_RULE = `token ids must be integers from 0 to ${MAX_ID}`

/** @returns null unless every item is a token id */
export function toTokenIds(list: readonly unknown[]): Uint32Array | null {
  const isId = (id: unknown) => Number.isInteger(id) && (id as number) >= 0 && (id as number) <= MAX_ID
  return list.every(isId) ? Uint32Array.from(list as readonly number[]) : null
}
