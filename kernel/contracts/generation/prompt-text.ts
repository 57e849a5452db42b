/** The text view of a prompt: what `onPromptText` hooks see of a request to a model. */

/** One text that a model gets. */
export interface PromptText {
  /**
   * Role of the message, such as `user`, or what the form of the item implies: `tool` for results, `assistant` for calls and
   * reasoning, `system` for instructions. Null without one, such as in descriptions of tools, bare prompts and inputs of embeddings.
   */
  readonly role: string | null
  /** Names of the members and indices that lead to it in the request to the worker, such as `messages.2.content.0.text`. */
  readonly place: string
  readonly text: string
}
