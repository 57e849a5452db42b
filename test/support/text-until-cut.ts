/** The body of a response up to its end, or to where the gateway closed its connection after an error event. */
export async function textUntilCut(reply: Response): Promise<string> {
  const reader = (reply.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const next = await reader.read().catch(() => ({ done: true as const }))
    if (next.done) return text
    text += decoder.decode(next.value, { stream: true })
  }
}
