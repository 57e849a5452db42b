/** Responses of a simulated SGLang worker to health checks and discovery, by path. */
export function discoveryResponses(model: string): Readonly<Record<string, object>> {
  return {
    '/health': {},
    '/v1/models': { object: 'list', data: [{ id: model, object: 'model', owned_by: 'sglang' }] },
    '/server_info': { version: '0', model_path: model },
    '/model_info': { model_path: model, is_generation: true },
  }
}
