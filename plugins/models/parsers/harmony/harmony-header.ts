/** Reads the head of a message, which says where its content goes. Nothing in it is an error. */
import { CHANNEL, CONSTRAIN } from './harmony-tokens.ts'

export type HarmonyKind = 'reasoning' | 'text' | 'call' | 'ignored'

export interface HarmonyHeader {
  readonly kind: HarmonyKind
  /** Name of the function; empty unless the kind is `call`. */
  readonly name: string
}

const FUNCTIONS = 'functions.'
const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool'])

/** @param header text between the message's start and `<|message|>` */
export function readHeader(header: string): HarmonyHeader {
  const [beforeChannel, ...behind] = header.split(CHANNEL)
  const channelPart = behind.join(' ')
  const channel = /^\s*([^\s<]*)/.exec(channelPart)?.[1] ?? ''
  const rest = `${beforeChannel} ${channelPart.slice(channelPart.indexOf(channel) + channel.length)}`
  const words = rest.replaceAll(CONSTRAIN, ` ${CONSTRAIN}`).split(/\s+/).filter(Boolean)
  const [first = 'assistant'] = words
  const hasRole = ROLES.has(first)
  if (hasRole && first !== 'assistant') return { kind: 'ignored', name: '' }
  const recipient = recipientOf(hasRole ? words.slice(1) : words, behind.length > 0)
  return { kind: kindOf(recipient, channel), name: nameOf(recipient) }
}

/** `to=R`, or the one word that is neither content type nor role. */
function recipientOf(words: readonly string[], hasChannel: boolean): string {
  const named = words.find((word) => word.startsWith('to='))
  if (named !== undefined) return named.slice('to='.length)
  const [only = ''] = words
  return hasChannel && only.startsWith(FUNCTIONS) ? only : ''
}

function nameOf(recipient: string): string {
  return recipient.startsWith(FUNCTIONS) ? recipient.slice(FUNCTIONS.length) : ''
}

function kindOf(recipient: string, channel: string): HarmonyKind {
  if (nameOf(recipient) !== '') return 'call'
  // Tools of the model's own, which nobody here runs.
  if (/^(?:python|browser|container)/.test(recipient)) return 'reasoning'
  return channel === 'analysis' ? 'reasoning' : 'text'
}
