/** What is built here: objects of the format, whose members only the worker reads. */

export type Json = Record<string, unknown>
