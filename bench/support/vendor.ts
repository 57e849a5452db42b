/** Sections for a gateway whose one worker is a vendor that speaks the Messages format. */

export function vendorAt(port: number): Readonly<Record<string, unknown>> {
  const vendor = {
    url: `http://127.0.0.1:${port}`,
    runtime_type: 'external',
    provider: 'anthropic',
    api_key: 'bench',
    models: [{ id: 'bench' }],
  }
  return { messages: {}, workers: { workers: [vendor] } }
}
