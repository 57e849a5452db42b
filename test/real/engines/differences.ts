/** Requests of the matrix whose responses differ between the engine and the gateway, and why. */
const LIMITED =
  'An answer that ends at the token limit is `incomplete`; the engine calls it `completed`. A stream ends with `[DONE]`.'

export const DIFFERENCES: Readonly<Record<string, string>> = {
  'chat: image': 'The engine answers 500; it is a mistake of the client, so 400.',
  'responses: whole': LIMITED,
  'responses: stream': LIMITED,
  'responses: instructions': LIMITED,
}
