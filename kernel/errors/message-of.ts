/** The message of any thrown value, for logs and messages that quote it. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
