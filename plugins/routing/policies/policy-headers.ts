/** The request headers that policies read: every request keeps them, whatever its route declares. */

/** Names a session; the first present counts. */
export const ROUTING_KEY_HEADERS: readonly string[] = Object.freeze([
  'x-weir-routing-key',
  'x-smg-routing-key',
])

/** What consistent_hashing goes by. Which of them reach workers is the allow-list's to say. */
export const SESSION_HEADERS: readonly string[] = Object.freeze([
  ...ROUTING_KEY_HEADERS,
  'x-weir-target-worker',
  'x-smg-target-worker',
  'authorization',
  'x-forwarded-for',
  'cookie',
])
