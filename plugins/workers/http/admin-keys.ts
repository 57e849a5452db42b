/** Which of the gateway's own keys for model lists a cloud service gets. */

/**
 * @param provider service that the worker stands for; null when nobody says
 * @param isTrusted the key may go to the worker's host: it is the service's own, which a name proves over TLS only, or the
 *   configuration names it; and nobody on the way reads along. Whoever may register workers could otherwise have the key
 *   sent anywhere.
 */
export function adminKeyOf(
  keys: ReadonlyMap<string, string>,
  provider: string | null,
  isTrusted: boolean,
): string | null {
  return provider === null || !isTrusted ? null : (keys.get(provider) ?? null)
}
