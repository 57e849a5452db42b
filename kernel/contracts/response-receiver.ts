/** Receives the response of a request without a connection of its own: of detached work, or of a WebSocket message. */
export interface ResponseReceiver {
  /** Before any of the body, where the response has a content type. */
  onType(contentType: string): void
  /** The memory of `chunk` may be reused after the call. @returns false to pause the response */
  onData(chunk: string | Buffer): boolean
  /** The response is complete. */
  onEnd(): void
  /** The response was cut off. @param isStalled the receiver has not taken what it was given */
  onCut(isStalled: boolean): void
}
