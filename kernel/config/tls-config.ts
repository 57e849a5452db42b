/** Settings of TLS on the API's listener, and of whom the gateway itself trusts. */
import type { Static } from 'typebox'
import { Type } from '../contracts/type.ts'

export const TlsConfigSchema = Type.Object(
  {
    certFile: Type.String({
      minLength: 1,
      description: 'PEM with the certificate and those between it and its authority. Read again at a reload.',
    }),
    keyFile: Type.String({ minLength: 1, description: 'PEM with the private key. Read again at a reload.' }),
    keyPassphrase: Type.Optional(Type.String({ secret: true, description: 'Of an encrypted private key.' })),
    clientCaFile: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'PEM with authorities of clients (mutual TLS): a client without a certificate of one of them is refused in the handshake. Read again at a reload.',
      }),
    ),
  },
  {
    additionalProperties: false,
    description:
      'The API speaks TLS; left out, plain HTTP. The metrics port stays plain, and plugins.health.probe opens a plain port for probes.',
  },
)

export type TlsConfig = Static<typeof TlsConfigSchema>
